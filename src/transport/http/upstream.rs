//! HTTP on the connection to a server: version 1.1 where nothing else was agreed on.

use std::{error::Error as _, pin::Pin};

use hyper::{
    HeaderMap, Request, Response, Uri, Version,
    body::{Body, Incoming},
    client::conn::{http1, http2},
    header::{CONNECTION, HOST, PROXY_AUTHORIZATION, TRANSFER_ENCODING},
    http::uri::PathAndQuery,
};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::{
    MAX_HEAD, MAX_HEADERS,
    connect::{ConnectError, Connection, Connector, Proxied},
    origin::Origin,
};

/// What moves the bytes of a connection; it is to be polled until it ends.
pub type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;
/// A response that is still to come.
pub type Answer = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

/// Sends requests on one connection.
#[derive(Debug)]
pub struct Sender<B> {
    inner: Inner<B>,
    proxied: Option<Proxied>,
    origin: Origin,
}

#[derive(Debug)]
enum Inner<B> {
    Http1(http1::SendRequest<B>),
    Http2(http2::SendRequest<B>),
}

/// What to do about an answer that could not be read because the server speaks another version of HTTP; none where that
/// is not the reason.
pub fn in_other_version(error: &hyper::Error) -> Option<&'static str> {
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    // `HTT` is no length of a frame.
    if source.ends_with("frame with invalid size") {
        return Some("it does not speak HTTP/2; leave out --http2");
    }
    (error.is_parse() && error.to_string().starts_with("invalid HTTP version"))
        .then_some("it does not answer in HTTP/1.1; where it speaks HTTP/2 alone, add --http2")
}

/// Opens a connection. The second of what it gives does the work.
///
/// # Errors
/// When there is none.
pub async fn open<B>(connector: &Connector) -> Result<(Sender<B>, Driver), ConnectError>
where
    B: Body + Unpin + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    speak(connector.connect().await?, connector).await
}

/// Speaks HTTP on a connection that is open, and on which nothing is under way.
///
/// # Errors
/// When it is not spoken there.
pub async fn speak<B>(
    connection: Connection,
    connector: &Connector,
) -> Result<(Sender<B>, Driver), ConnectError>
where
    B: Body + Unpin + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let io = TokioIo::new(connection.stream);
    let (inner, driver): (_, Driver) = if connection.is_http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
        let (sender, driver) = builder.handshake(io).await.map_err(|error| connector.failed(error))?;
        (Inner::Http2(sender), Box::pin(driver))
    } else {
        let (sender, driver) = http1::Builder::new()
            .preserve_header_case(true)
            .max_headers(MAX_HEADERS)
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .handshake(io)
            .await
            .map_err(|error| connector.failed(error))?;
        (Inner::Http1(sender), Box::pin(driver))
    };
    Ok((Sender { inner, proxied: connection.proxied, origin: connector.origin().clone() }, driver))
}

impl<B> Sender<B>
where
    B: Body + Send + 'static,
{
    /// Waits until the connection has done with the request before. Where the server has closed it, sending says so.
    pub async fn ready(&mut self) {
        let _ = match &mut self.inner {
            Inner::Http1(sender) => sender.ready().await,
            Inner::Http2(sender) => sender.ready().await,
        };
    }

    /// Another one for the same connection, where requests can share it.
    pub fn share(&self) -> Option<Self> {
        match &self.inner {
            Inner::Http1(_) => None,
            Inner::Http2(sender) => Some(Self {
                inner: Inner::Http2(sender.clone()),
                proxied: self.proxied.clone(),
                origin: self.origin.clone(),
            }),
        }
    }

    /// Whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        match &self.inner {
            Inner::Http1(sender) => sender.is_closed(),
            Inner::Http2(sender) => sender.is_closed(),
        }
    }

    /// Sends a request whose `Host` is the server's, addressed as this connection wants it.
    pub fn send(&mut self, mut request: Request<B>) -> Answer {
        let path = request.uri().path_and_query().cloned();
        match &mut self.inner {
            Inner::Http1(sender) => {
                *request.version_mut() = Version::HTTP_11;
                // A server is asked for a path, also where a client named the whole address; a proxy for the whole.
                let uri = match &self.proxied {
                    Some(_) => self.origin.uri(path),
                    None => path.map(Uri::from),
                };
                if let Some(uri) = uri {
                    *request.uri_mut() = uri;
                }
                if let Some(Proxied { credentials: Some(credentials) }) = &self.proxied {
                    request.headers_mut().insert(PROXY_AUTHORIZATION, credentials.clone());
                }
                Box::pin(sender.send_request(request))
            }
            Inner::Http2(sender) => {
                *request.version_mut() = Version::HTTP_2;
                if let Some(uri) = self.origin.uri(path) {
                    *request.uri_mut() = uri;
                }
                *request.headers_mut() = end_to_end(request.headers());
                Box::pin(sender.send_request(request))
            }
        }
    }
}

/// What HTTP/2 says of a connection it does not say in headers (RFC 9113, 8.2.2 and 8.3.1).
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if *name != HOST && *name != CONNECTION && *name != TRANSFER_ENCODING {
            kept.append(name, value.clone());
        }
    }
    kept
}

impl Origin {
    /// The whole address of something on it.
    fn uri(&self, path: Option<PathAndQuery>) -> Option<Uri> {
        let path = path.unwrap_or(PathAndQuery::from_static("/"));
        let scheme = if self.is_secure() { "https" } else { "http" };
        Uri::builder().scheme(scheme).authority(self.authority()).path_and_query(path).build().ok()
    }
}
