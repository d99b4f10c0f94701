//! A joined process: the far end of a pipe between a client's stdio and a take.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
};

use super::{
    super::reply::Place,
    Front,
    deck::TOO_MANY_TAKES,
    take::{Spoken, Take},
};
use crate::{
    proxy::join::{self, Hello},
    wire::lines::LineSplitter,
};

/// How much is read at once.
const READ: usize = 64 << 10;
/// So long after what came before it a client is sent what it must not read together with that.
const APART: Duration = Duration::from_millis(5);
/// The longest greeting.
const LONGEST_HELLO: usize = 64 << 10;

/// Serves a joined process until it leaves or the recorded server ends.
pub(super) async fn serve(stream: UnixStream, front: Arc<Front>) {
    let closing = front.closing.subscribe();
    let (mut input, mut output) = stream.into_split();
    let Ok(Some((hello, rest))) = greeting(&mut input).await else {
        return front.could_not_join("a process left before it had said which server it wants".to_owned());
    };
    let take = match front.joined(&hello) {
        Ok(Ok(take)) => take,
        Ok(Err(why)) => return front.could_not_join(why),
        Err(sentence) => {
            // It may have gone; then nobody asks.
            let _ = output.write_all(format!("{sentence}\n").as_bytes()).await;
            return front.could_not_join(sentence);
        }
    };
    let (place, spoken) = take.join();
    if output.write_all(join::WELCOME).await.is_err() {
        return front.could_not_join("a process left before it was welcome".to_owned());
    }
    let lane = place.lane();
    // Writing has a task of its own: who sends while it does not read must not lock us up.
    drop(tokio::spawn(write(output, spoken, place, closing)));
    let mut lines = LineSplitter::new(front.max_message);
    take.hear(lane, &mut lines, &rest);
    let mut room = vec![0; READ];
    loop {
        match input.read(&mut room).await {
            Ok(0) => {
                let end = lines.end();
                take.hear(lane, &mut lines, end);
                return take.closed(lane);
            }
            Err(_) => return take.closed(lane),
            Ok(length) => take.hear(lane, &mut lines, &room[..length]),
        }
    }
}

impl Front {
    /// The take that a process wants to join, or why one broke off; or why it cannot.
    fn joined(&self, hello: &[u8]) -> Result<Result<Arc<Take>, String>, String> {
        let hello = Hello::read(hello)?;
        if let Some(why) = hello.broke_off {
            return Ok(Err(why));
        }
        let deck = self.server(hello.server.as_deref())?;
        deck.take(&hello.take).map(Ok).ok_or_else(|| TOO_MANY_TAKES.to_owned())
    }
}

/// The first line, and what came behind it.
async fn greeting(input: &mut OwnedReadHalf) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut heard = Vec::new();
    while heard.len() < LONGEST_HELLO {
        if let Some(end) = memchr::memchr(b'\n', &heard) {
            let rest = heard.split_off(end + 1);
            return Ok(Some((heard, rest)));
        }
        if input.read_buf(&mut heard).await? == 0 {
            break;
        }
    }
    Ok(None)
}

/// Sends what the take says: each piece is one write of the joined process.
async fn write(
    mut output: OwnedWriteHalf,
    mut spoken: mpsc::UnboundedReceiver<Spoken>,
    place: Place,
    closing: watch::Receiver<bool>,
) {
    let mut next = spoken.recv().await;
    while let Some(said) = next.take() {
        let is_end = matches!(said, Spoken::End(_));
        let sent = match said {
            Spoken::End(end) => join::end(&end),
            Spoken::Close(partial) => join::closed(&partial),
            Spoken::Raw(bytes) => join::piece(&bytes),
            Spoken::Line { bytes, apart } => {
                if apart && place.may_crowd() {
                    tokio::time::sleep(APART).await;
                }
                let mut piece = bytes;
                piece.push(b'\n');
                loop {
                    match spoken.try_recv() {
                        Ok(Spoken::Line { bytes, apart: false }) => {
                            piece.extend_from_slice(&bytes);
                            piece.push(b'\n');
                        }
                        Ok(other) => break next = Some(other),
                        Err(_) => break,
                    }
                }
                join::piece(&piece)
            }
        };
        if output.write_all(&sent).await.is_err() {
            // It has gone, which its place tells.
            break;
        }
        if is_end {
            let _ = output.shutdown().await;
            break;
        }
        if next.is_none() {
            next = spoken.recv().await;
        }
    }
    drop((place, closing));
}
