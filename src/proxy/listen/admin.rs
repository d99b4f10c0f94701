//! Tending a run over HTTP: what it does, and what it is to do next, in JSON.
//!
//! - `ask`: what is asked: the table of operations, filters and bodies
//! - `answer`: what each operation does
//! - `advance`: winding the clock
//! - `recent`: the last events
//!
//! `tapedeck schema admin` prints what users read of it.

mod advance;
mod answer;
mod ask;
mod recent;

use std::{
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    sync::Arc,
};

use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    service::service_fn,
};
use tokio::net::TcpStream;

pub(super) use self::recent::Recent;
use self::{
    answer::answer,
    ask::{Ask, Problem},
};
use super::{
    super::reply::{Cut, ResponseBody},
    Front, connection,
};
use crate::transport::http::{HEAD_TIME, server, socket::Socket};

/// Longer bodies are refused.
const MAX_BODY: usize = 64 << 10;

type Answer = Response<ResponseBody>;

/// Where a run is tended.
#[derive(Debug)]
pub struct Admin {
    pub(super) listener: TcpListener,
    address: SocketAddr,
}

impl Admin {
    /// Listens there; port 0 picks one.
    ///
    /// # Errors
    /// When somebody else listens there, or nobody may; with [`io::ErrorKind::InvalidInput`] where others than this
    /// machine could reach it.
    pub fn bind(address: &str) -> io::Result<Self> {
        let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        if !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let listener = TcpListener::bind(&*addresses)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The origin by which it is reached.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Serves one who tends the run until it leaves, or the run ends.
pub(super) async fn serve(stream: TcpStream, front: Arc<Front>) {
    let Some(stream) = server::open(stream, None, |_| ()).await else { return };
    let socket = Socket::new(stream);
    let (control, closing) = (Arc::clone(&socket.1), front.closing.subscribe());
    let service = service_fn(move |request| {
        let (front, control) = (Arc::clone(&front), Arc::clone(&control));
        async move {
            control.head_is_read();
            let answer = handle(&front, request).await;
            control.awaits_head();
            answer
        }
    });
    server::serve_http1(&server::http1(), socket, service, closing, HEAD_TIME, || false).await;
}

async fn handle(front: &Front, request: Request<Incoming>) -> Result<Answer, Cut> {
    if let Some((status, sentence)) = front.admin_guard.refusal(&request) {
        return Ok(told(Err(Problem::new(status, sentence.trim_end()))));
    }
    let (head, body) = request.into_parts();
    let ask = match Ask::of(head.method.as_str(), head.uri.path(), head.uri.query()) {
        Ok(ask) => ask,
        Err(problem) => return Ok(told(Err(problem))),
    };
    let Some(body) = connection::read(body, MAX_BODY).await? else {
        let sentence = format!("the body has more than {MAX_BODY} bytes");
        return Ok(told(Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, sentence))));
    };
    Ok(told(answer(front, ask, &body).await))
}

fn told(answer: Result<Vec<u8>, Problem>) -> Answer {
    let (status, allow, bytes) = match answer {
        Ok(bytes) => (StatusCode::OK, None, bytes),
        Err(problem) => (problem.status, problem.allow, problem.json()),
    };
    let mut response = Response::new(ResponseBody::Whole(Some(Bytes::from(bytes))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(allow) = allow {
        headers.insert(ALLOW, HeaderValue::from_static(allow));
    }
    response
}
