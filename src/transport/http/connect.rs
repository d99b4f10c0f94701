//! The way to a server: a connection, through a proxy where the environment names one, with TLS where its URL says so.
//!
//! One call opens one connection. Nothing is tried again but one thing: where a server refuses HTTP/1.1 in the TLS
//! handshake, before any request, the next handshake offers HTTP/2.

use std::{
    error::Error,
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use hyper::header::HeaderValue;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, InvalidMessage,
    pki_types::{ServerName, UnixTime},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{
    origin::{self, Origin},
    proxies::{Proxies, Proxy},
    tls::{self, HTTP_1, HTTP_2, TlsError, Trust},
};

/// The longest answer of a proxy to CONNECT.
const LONGEST_ANSWER: usize = 16 << 10;

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// How long it may take until there is a connection, proxy and TLS included.
    pub timeout: Duration,
    /// Dial this host, and port where it is not the URL's, instead of the URL's; whatever the environment says of
    /// proxies. Host, server name and certificate stay those of the URL.
    pub dial: Option<String>,
    /// By what its certificate is believed.
    pub trust: Trust,
    /// Speak HTTP/2.
    pub http2: bool,
    /// The proxies of the environment.
    pub proxies: Proxies,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            dial: None,
            trust: Trust::default(),
            http2: false,
            proxies: Proxies::default(),
        }
    }
}

/// Opens connections to one server.
#[derive(Debug)]
pub struct Connector {
    origin: Origin,
    timeout: Duration,
    dial: (String, u16),
    proxy: Option<Proxy>,
    tls: Option<Tls>,
    http2: bool,
}

struct Tls {
    /// Offers one protocol alone: a server that is offered both may choose HTTP/2.
    first: Arc<ClientConfig>,
    /// Offers the other one, if it may be spoken at all.
    second: Option<Arc<ClientConfig>>,
    name: ServerName<'static>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({:?})", self.name)
    }
}

/// An address that cannot be connected to, whatever answers there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectorError {
    /// `dial` is no host and port.
    #[error("`{0}` is no address to connect to; one looks like 127.0.0.1:9443")]
    Dial(String),
    /// The URL's host cannot be in a certificate.
    #[error("`{0}` cannot be the name in a server's certificate")]
    Name(String),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    /// Its bytes.
    pub stream: Stream,
    /// Whether HTTP/2 is spoken on it.
    pub is_http2: bool,
    /// How requests are to be addressed: the proxy that wants the whole address of each, and what it is shown.
    pub proxied: Option<Proxied>,
}

impl Connection {
    /// With the server itself, in HTTP/1.1.
    pub const fn plain(stream: Stream) -> Self {
        Self { stream, is_http2: false, proxied: None }
    }
}

/// A proxy that is handed requests, not a tunnel.
#[derive(Clone, Debug)]
pub struct Proxied {
    /// `Proxy-Authorization`
    pub credentials: Option<HeaderValue>,
}

impl Connector {
    /// The way to the server of this origin.
    ///
    /// # Errors
    /// When there can be none.
    pub fn new(origin: Origin, options: ConnectOptions) -> Result<Self, ConnectorError> {
        let dial = match &options.dial {
            None => (origin.host().to_owned(), origin.port()),
            Some(given) => {
                let bad = || ConnectorError::Dial(given.clone());
                let (host, port) = origin::split(given);
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let port = port.map_or(Ok(origin.port()), |port| port.parse().map_err(|_| bad()))?;
                if host.is_empty() || host.contains('/') {
                    return Err(bad());
                }
                (host.to_owned(), port)
            }
        };
        let tls = origin.is_secure().then(|| Tls::new(&origin, &options)).transpose()?;
        let proxy = options.proxies.of(&origin).filter(|_| options.dial.is_none()).cloned();
        Ok(Self { origin, timeout: options.timeout, dial, proxy, tls, http2: options.http2 })
    }

    /// Whose connections these are.
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Whether requests go to the server itself, and in HTTP/1.1 unless it refuses that.
    pub fn is_plain(&self) -> bool {
        !self.http2 && (self.proxy.is_none() || self.tls.is_some())
    }

    /// Opens one.
    ///
    /// # Errors
    /// When there is none, or none that can be trusted.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        let why = match timeout(self.timeout, self.open()).await {
            Ok(Ok(connection)) => return Ok(connection),
            Ok(Err(why)) => why,
            Err(_) => Why::Slow(self.timeout),
        };
        Err(ConnectError { origin: self.origin.clone(), dialled: self.dialled(), why })
    }

    /// The connection that was opened does not speak HTTP.
    pub(super) fn failed(&self, error: hyper::Error) -> ConnectError {
        let why = Why::Dial(io::Error::other(error));
        ConnectError { origin: self.origin.clone(), dialled: self.dialled(), why }
    }

    /// What was dialled, where that is not the URL's own address.
    fn dialled(&self) -> Option<String> {
        let is_own = self.dial.0 == self.origin.host() && self.dial.1 == self.origin.port();
        (!is_own).then(|| join(&self.dial.0, self.dial.1))
    }

    async fn open(&self) -> Result<Connection, Why> {
        let Some(tls) = &self.tls else {
            let stream = Stream::Plain(self.dial().await?);
            let proxied = self.proxy.as_ref().map(|proxy| Proxied { credentials: proxy.credentials.clone() });
            return Ok(Connection { stream, is_http2: self.http2 && proxied.is_none(), proxied });
        };
        let stream = match (self.handshake(tls, &tls.first).await, &tls.second) {
            (Err(why), Some(second)) if why.is_about_protocols() => self.handshake(tls, second).await?,
            (outcome, _) => outcome?,
        };
        let is_http2 = tls::is_http2(stream.get_ref().1.alpn_protocol());
        Ok(Connection { stream: Stream::Tls(Box::new(stream)), is_http2, proxied: None })
    }

    async fn handshake(&self, tls: &Tls, config: &Arc<ClientConfig>) -> Result<TlsStream<TcpStream>, Why> {
        let stream = self.dial().await?;
        let connector = TlsConnector::from(Arc::clone(config));
        let failed = |error| Why::Handshake { error, is_http2_alone: tls.second.is_none() };
        connector.connect(tls.name.clone(), stream).await.map_err(failed)
    }

    /// A connection to the server itself, or one that leads there.
    async fn dial(&self) -> Result<TcpStream, Why> {
        let Some(proxy) = &self.proxy else {
            return dial(&self.dial.0, self.dial.1).await.map_err(Why::Dial);
        };
        let at = || join(&proxy.host, proxy.port);
        let failed = |source| Why::Proxy { at: at(), variable: proxy.variable, source };
        let mut stream = dial(&proxy.host, proxy.port).await.map_err(failed)?;
        if self.tls.is_some() {
            let answer = tunnel(&mut stream, &self.dial, proxy).await.map_err(failed)?;
            if let Some(answer) = answer {
                return Err(Why::Refused { at: at(), variable: proxy.variable, answer });
            }
        }
        Ok(stream)
    }
}

fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

async fn dial(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // Without it small messages would wait for acknowledgements; where it fails they do.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Asks a proxy for a tunnel (RFC 9110, 9.3.6); its answer where it is no.
async fn tunnel(stream: &mut TcpStream, to: &(String, u16), proxy: &Proxy) -> io::Result<Option<String>> {
    let to = join(&to.0, to.1);
    let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n").into_bytes();
    if let Some(credentials) = &proxy.credentials {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(credentials.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;
    let mut answer = Vec::new();
    // Behind the head the bytes are the server's, so none of them may be read here.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() > LONGEST_ANSWER {
            return Err(io::Error::other("its answer does not end"));
        }
        answer.push(stream.read_u8().await?);
    }
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line).into_owned();
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).unwrap_or_default();
    Ok((!status.starts_with('2')).then_some(line))
}

impl Tls {
    fn new(origin: &Origin, options: &ConnectOptions) -> Result<Self, ConnectorError> {
        let name = ServerName::try_from(origin.host().to_owned())
            .map_err(|_| ConnectorError::Name(origin.host().to_owned()))?;
        let offering = |protocol: &[u8], config: &ClientConfig| {
            let mut config = config.clone();
            config.alpn_protocols = vec![protocol.to_vec()];
            Arc::new(config)
        };
        let config = options.trust.client()?;
        let (first, second) = match options.http2 {
            true => (offering(HTTP_2, &config), None),
            false => (offering(HTTP_1, &config), Some(offering(HTTP_2, &config))),
        };
        Ok(Self { first, second, name })
    }
}

/// A server could not be reached.
#[derive(Debug)]
pub struct ConnectError {
    origin: Origin,
    dialled: Option<String>,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Slow(Duration),
    Dial(io::Error),
    Proxy { at: String, variable: &'static str, source: io::Error },
    Refused { at: String, variable: &'static str, answer: String },
    Handshake { error: io::Error, is_http2_alone: bool },
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.why {
            Why::Dial(error) | Why::Handshake { error, .. } | Why::Proxy { source: error, .. } => Some(error),
            Why::Slow(_) | Why::Refused { .. } => None,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tapedeck cannot reach the server at {}", self.origin)?;
        if let Some(dialled) = &self.dialled {
            write!(f, " by {dialled}")?;
        }
        write!(f, ": ")?;
        match &self.why {
            Why::Slow(limit) => {
                write!(f, "no connection within {} s; --connect-timeout allows more", limit.as_secs_f32())
            }
            Why::Dial(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                write!(f, "nothing listens there ({error}); start the server, or give its address as --url")
            }
            Why::Dial(error) => write!(f, "{error}"),
            Why::Proxy { at, variable, source } => {
                write!(
                    f,
                    "the proxy {at} that {variable} names fails ({source}); NO_PROXY lists servers reached without it"
                )
            }
            Why::Refused { at, variable, answer } => write!(
                f,
                "the proxy {at} that {variable} names opens no tunnel (`{answer}`); NO_PROXY lists servers reached without it"
            ),
            why @ Why::Handshake { is_http2_alone: true, .. } if why.is_about_protocols() => {
                f.write_str("it does not speak HTTP/2, which alone was offered; leave out --http2")
            }
            Why::Handshake { error, .. } => tell_handshake(f, error, &self.origin),
        }
    }
}

impl Why {
    /// Whether the handshake failed because the protocol that was offered is not spoken.
    fn is_about_protocols(&self) -> bool {
        let Self::Handshake { error, .. } = self else { return false };
        matches!(
            tls_error(error),
            Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol))
        )
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn tell_handshake(f: &mut fmt::Formatter<'_>, error: &io::Error, origin: &Origin) -> fmt::Result {
    let anyway = "--insecure-skip-verify goes on without the check";
    let Some(error) = tls_error(error) else {
        return write!(
            f,
            "it ended the TLS handshake ({error}); where it speaks plain HTTP, give the URL as http://"
        );
    };
    match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => write!(
                f,
                "nobody this machine trusts has issued its certificate; give the issuer's certificate as --ca FILE ({anyway})"
            ),
            // One that its owner has signed, as `openssl req -x509` makes them.
            CertificateError::Other(_) => write!(
                f,
                "its certificate was not issued for a server by anybody ({certificate}); where it is the server's own, give it as --ca FILE ({anyway})"
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                write!(
                    f,
                    "its certificate has expired{}; renew it, or set this machine's clock ({anyway})",
                    expiry(certificate)
                )
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                write!(
                    f,
                    "its certificate is not valid yet{}; set this machine's clock ({anyway})",
                    expiry(certificate)
                )
            }
            CertificateError::NotValidForNameContext { presented, .. } => write!(
                f,
                "its certificate is not for `{}`, but for {}; give such a name as --url, and --connect ADDR where it leads elsewhere ({anyway})",
                origin.host(),
                Names(presented)
            ),
            CertificateError::NotValidForName => {
                write!(f, "its certificate is not for `{}`; give its name as --url ({anyway})", origin.host())
            }
            other => write!(f, "its certificate cannot be accepted ({other}); {anyway}"),
        },
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            write!(
                f,
                "it speaks neither of the protocols that were offered (HTTP/1.1, HTTP/2); is it the address of an MCP server?"
            )
        }
        rustls::Error::AlertReceived(alert) => write!(f, "it refuses the TLS handshake ({alert:?})"),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            write!(f, "it does not speak TLS; give its URL as http://{}", origin.authority())
        }
        other => write!(f, "the TLS handshake failed ({other})"),
    }
}

/// The names in a certificate.
struct Names<'a>(&'a [String]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, name) in self.0.iter().take(5).enumerate() {
            // `DnsName("a.example")`, as rustls spells them.
            let bare = name.split('"').nth(1).unwrap_or(name);
            write!(f, "{}`{bare}`", if place > 0 { ", " } else { "" })?;
        }
        match self.0.len() {
            0 => f.write_str("no name at all"),
            1..=5 => Ok(()),
            more => write!(f, " and {} more", more - 5),
        }
    }
}

/// Since when, or until when.
fn expiry(certificate: &CertificateError) -> String {
    let day = |time: &UnixTime| {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        jiff::Timestamp::from_second(seconds).map_or_else(|_| "?".to_owned(), |time| time.to_string())
    };
    match certificate {
        CertificateError::ExpiredContext { time, not_after } => {
            format!(": it ended {}, and the clock says {}", day(not_after), day(time))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            format!(": it begins {}, and the clock says {}", day(not_before), day(time))
        }
        _ => String::new(),
    }
}

/// The bytes of a connection to a server.
#[derive(Debug)]
pub enum Stream {
    /// As they are.
    Plain(TcpStream),
    /// Under TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! each {
    ($self:expr, $stream:ident => $what:expr) => {
        match $self.get_mut() {
            Stream::Plain($stream) => $what,
            Stream::Tls($stream) => $what,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
