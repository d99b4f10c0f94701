//! Requests that are answered before they are whole: as the recorded server did, or since their rest does not come, or is
//! too much.

use std::{error::Error, time::Duration};

use hyper::{
    Response,
    body::{Body, Bytes, Incoming},
    header::{CONNECTION, HeaderValue},
};
use tokio::time::{Instant, timeout_at};

use super::super::reply::{Cut, ResponseBody};
use crate::{
    replay::{Pace, Wants},
    transport::http::{
        BODY_TIME,
        body::{is_malformed, next_data},
        socket::Control,
    },
};

/// For how long nothing comes of a body before it pauses, before it stops, and before it is not waited for.
pub(super) struct Patience {
    pauses: Duration,
    stops: Duration,
    ends: Duration,
}

impl Patience {
    /// A client that sends on takes less than the first from its head to its body, and than the second from any piece to
    /// the next; one that waits for an answer waits longer.
    pub(super) const USUAL: Self =
        Self { pauses: Duration::from_millis(250), stops: Duration::from_secs(1), ends: BODY_TIME };

    /// When what is next, and what that is.
    const fn paces(&self) -> [(Duration, Option<Pace>); 3] {
        [(self.pauses, Some(Pace::Pauses)), (self.stops, Some(Pace::Stops)), (self.ends, None)]
    }
}

/// What has come of a body.
pub(super) enum Came<B = Incoming> {
    /// All of it, or as much as is needed; then with what is left of it.
    Body(Bytes, Option<Rest<B>>),
    /// More than may be.
    TooLong(Rest<B>),
    /// What cannot be read as one.
    Broken,
}

/// What a client may still send of a request that is answered.
pub(super) struct Rest<B = Incoming>(Option<B>);

/// Reads a body until it is whole, until nothing `wants` more of it, until it is too long, or until no more comes.
/// `expects`: its client sends it once it is told to.
pub(super) async fn read<B>(
    mut body: B,
    expects: bool,
    limit: usize,
    patience: &Patience,
    mut wants: impl FnMut(&[u8], Pace) -> Wants,
) -> Result<Came<B>, Cut>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Error + 'static,
{
    let is_too_long = body.size_hint().exact().is_some_and(|length| length > limit as u64);
    // Of a longer one a beginning may have been answered when it was recorded.
    if is_too_long && wants(&[], Pace::Comes) == Wants::All {
        return Ok(Came::TooLong(Rest(Some(body).filter(|_| !expects))));
    }
    // To ask for the body is to have its client told so.
    if expects && !body.is_end_stream() && wants(&[], Pace::Pauses) == Wants::Nothing {
        return Ok(Came::Body(Bytes::new(), Some(Rest(None))));
    }
    let (mut bytes, mut enough) = (Pieces::default(), Some(1));
    let (mut paces, mut since) = (patience.paces().into_iter(), Instant::now());
    loop {
        let (time, pace) = paces.next().unwrap_or((patience.ends, None));
        let Ok(data) = timeout_at(since + time, next_data(&mut body)).await else {
            match pace {
                Some(pace) if wants(bytes.so_far(), pace) != Wants::Nothing => continue,
                _ => return Ok(Came::Body(bytes.whole(), Some(Rest(Some(body))))),
            }
        };
        let data = match data {
            Ok(Some(data)) => data,
            Ok(None) => return Ok(Came::Body(bytes.whole(), None)),
            Err(error) if is_malformed(&error) => return Ok(Came::Broken),
            Err(_) => return Err(Cut),
        };
        (paces, since) = (patience.paces().into_iter(), Instant::now());
        if bytes.so_far().len() + data.len() > limit {
            return Ok(Came::TooLong(Rest(Some(body))));
        }
        bytes.push(data);
        let length = bytes.so_far().len();
        if enough.is_some_and(|enough| length >= enough) {
            enough = match wants(bytes.so_far(), Pace::Comes) {
                Wants::Nothing => return Ok(Came::Body(bytes.whole(), Some(Rest(Some(body))))),
                Wants::More(more) => Some(length + more),
                Wants::All => None,
            };
        }
    }
}

/// A body as far as it has come. Most come in one piece.
#[derive(Default)]
struct Pieces {
    one: Bytes,
    several: Vec<u8>,
}

impl Pieces {
    fn push(&mut self, data: Bytes) {
        if self.so_far().is_empty() {
            self.one = data;
            return;
        }
        if self.several.is_empty() {
            self.several = std::mem::take(&mut self.one).into();
        }
        self.several.extend_from_slice(&data);
    }

    fn so_far(&self) -> &[u8] {
        if self.several.is_empty() { &self.one } else { &self.several }
    }

    fn whole(self) -> Bytes {
        if self.several.is_empty() { self.one } else { self.several.into() }
    }
}

impl Rest {
    /// Takes what still comes, to nobody: a client that cannot send on may not read its answer.
    pub(super) fn goes_nowhere(self) {
        if let Self(Some(mut body)) = self {
            drop(tokio::spawn(async move { while let Ok(Some(_)) = next_data(&mut body).await {} }));
        }
    }
}

/// The connection ends behind a response to what is not whole: nobody knows whether the rest comes.
pub(super) fn is_last(response: &mut Response<ResponseBody>, control: &Control) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response.body_mut().half_closes(control);
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        io,
        pin::Pin,
        task::{Context, Poll},
    };

    use hyper::body::{Frame, SizeHint};

    use super::*;

    /// A body that says nothing behind its pieces, or behind all of them that it ends; how often it was asked, and what
    /// it says of its length.
    #[derive(Default)]
    struct Sent {
        pieces: VecDeque<&'static str>,
        ends: bool,
        asked: usize,
        length: Option<u64>,
    }

    /// What stands for a piece that is none.
    const BROKEN: &str = "\0";

    impl Body for Sent {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            self.asked += 1;
            match self.pieces.pop_front() {
                Some(BROKEN) => Poll::Ready(Some(Err(io::ErrorKind::InvalidInput.into()))),
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece.into())))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }

        fn size_hint(&self) -> SizeHint {
            self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
        }
    }

    /// What is read of pieces, whether that is all of it, what was asked in between, and how often the body was asked.
    fn reads(
        pieces: &[&'static str],
        (ends, expects, limit): (bool, bool, usize),
        wants: impl Fn(&[u8], Pace) -> Wants,
    ) -> (Option<(String, bool)>, String, usize) {
        let body = Sent { pieces: pieces.iter().copied().collect(), ends, ..Sent::default() };
        reads_of(body, expects, limit, wants)
    }

    fn reads_of(
        body: Sent,
        expects: bool,
        limit: usize,
        wants: impl Fn(&[u8], Pace) -> Wants,
    ) -> (Option<(String, bool)>, String, usize) {
        let patience = Patience {
            pauses: Duration::from_millis(1),
            stops: Duration::from_millis(2),
            ends: Duration::from_millis(3),
        };
        let (mut asked, mut polls) = (String::new(), 0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let came = runtime.block_on(read(body, expects, limit, &patience, |body, pace| {
            asked += &format!("{pace:?} {} ", body.len());
            wants(body, pace)
        }));
        let came = match came.ok().unwrap() {
            Came::Body(bytes, rest) => {
                let is_whole = rest.is_none();
                polls = rest.and_then(|Rest(body)| body).map_or(0, |body| body.asked);
                Some((String::from_utf8(bytes.to_vec()).unwrap(), is_whole))
            }
            Came::TooLong(Rest(body)) => {
                polls = body.map_or(0, |body| body.asked);
                None
            }
            Came::Broken => Some(("broken".to_owned(), false)),
        };
        (came, asked.trim_end().to_owned(), polls)
    }

    fn came(text: &str, is_whole: bool) -> Option<(String, bool)> {
        Some((text.to_owned(), is_whole))
    }

    #[test]
    fn a_body_is_read_to_its_end_or_until_nothing_is_wanted() {
        for pieces in [&["abcd"][..], &["ab", "cd"], &["a", "b", "c", "d"]] {
            let (read, ..) = reads(pieces, (true, false, 4), |_, _| Wants::All);
            assert_eq!(read, came("abcd", true));
            let (read, ..) = reads(pieces, (true, false, 3), |_, _| Wants::All);
            assert_eq!(read, None, "too long");
        }
        let enough =
            |body: &[u8], _| if body.len() < 3 { Wants::More(3 - body.len()) } else { Wants::Nothing };
        let (read, asked, _) = reads(&["a", "b", "c", "d"], (true, false, 9), enough);
        assert_eq!((read, &*asked), (came("abc", false), "Comes 1 Comes 3"));
        assert_eq!(reads(&[], (true, false, 9), |_, _| Wants::All).0, came("", true));
    }

    #[test]
    fn what_is_too_long_is_read_no_further_than_to_where_it_says_so() {
        let (read, asked, polls) = reads(&["abc", "de", "f"], (true, false, 4), |_, _| Wants::All);
        assert_eq!((read, &*asked, polls), (None, "Comes 3", 2));
        let declared = || Sent { pieces: ["abcde"].into(), ends: true, length: Some(5), asked: 0 };
        for expects in [false, true] {
            assert_eq!(
                reads_of(declared(), expects, 4, |_, _| Wants::All),
                (None, "Comes 0".to_owned(), 0),
                "nothing of it was asked for"
            );
        }
        let (read, ..) = reads_of(declared(), false, 5, |_, _| Wants::All);
        assert_eq!(read, came("abcde", true));
        // A beginning of it was answered when it was recorded.
        let (read, asked, _) = reads_of(declared(), false, 4, |_, _| Wants::More(4));
        assert_eq!((read, &*asked), (None, "Comes 0"));
    }

    #[test]
    fn a_body_that_is_none_is_told_from_one_that_was_cut_off() {
        assert_eq!(reads(&["ab", BROKEN], (true, false, 9), |_, _| Wants::All).0, came("broken", false));
        assert!(!is_malformed(&io::Error::from(io::ErrorKind::UnexpectedEof)));
    }

    #[test]
    fn a_body_that_does_not_go_on_is_asked_about_and_then_left() {
        let (read, asked, _) = reads(&["ab"], (false, false, 9), |_, _| Wants::All);
        assert_eq!((read, &*asked), (came("ab", false), "Comes 2 Pauses 2 Stops 2"));
        let at = |at| move |_: &[u8], pace| if pace >= at { Wants::Nothing } else { Wants::All };
        assert_eq!(reads(&[], (false, false, 9), at(Pace::Pauses)).1, "Pauses 0");
        assert_eq!(reads(&["ab"], (false, false, 9), at(Pace::Stops)).1, "Comes 2 Pauses 2 Stops 2");
        // Of what is too long nothing is kept that could be asked about.
        let (read, asked, _) = reads(&["abcd"], (false, false, 3), at(Pace::Pauses));
        assert_eq!((read, &*asked), (None, ""));
    }

    #[test]
    fn a_client_that_waits_to_be_told_to_go_on_is_told_so_where_its_body_is_wanted() {
        let at_once = |_: &[u8], pace| if pace == Pace::Pauses { Wants::Nothing } else { Wants::All };
        assert_eq!(reads(&["ab"], (true, true, 9), at_once), (came("", false), "Pauses 0".to_owned(), 0));
        let (read, asked, _) = reads(&["ab"], (true, true, 9), |_, _| Wants::All);
        assert_eq!((read, &*asked), (came("ab", true), "Pauses 0 Comes 2"));
    }
}
