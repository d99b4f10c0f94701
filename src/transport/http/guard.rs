//! Whom a front on loopback serves: a web page must not reach it through the browser of the person who runs it.
//!
//! A page can make a browser send requests to loopback (with its own `Origin`), and with a name of its own that
//! resolves to loopback it can even read the answers (with that name as `Host`).

use std::net::Ipv6Addr;

use hyper::{
    Method, Request, StatusCode, Version,
    header::{HOST, HeaderValue, ORIGIN},
};

use super::origin::{self, is_local};

/// Which names a front answers to, and for whose pages.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// The front can be reached from elsewhere anyway, so it is not guarded.
    pub is_open: bool,
    /// Hosts that are served besides the local ones.
    pub hosts: Vec<String>,
    /// Origins that are served besides the local ones.
    pub origins: Vec<String>,
}

/// Why a request is not served; a sentence for whoever reads it in a browser or a log.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refusal {
    /// A foreign name.
    #[error("tapedeck does not answer to the host `{0}` on this address; `--allow-host {0}` allows it")]
    Host(String),
    /// A page from elsewhere.
    #[error("tapedeck does not serve pages of `{0}` on this address; `--allow-origin {0}` allows them")]
    Origin(String),
    /// What is the name of no host, and so nothing that could be allowed.
    #[error(
        "tapedeck: the request's host `{0}` is none; `Host` has a name or an address, and a port where there is one"
    )]
    NoHost(String),
    /// The same of an origin.
    #[error(
        "tapedeck: the request's `Origin: {0}` is none; one is a scheme, a host and a port, as in http://localhost:9000"
    )]
    NoOrigin(String),
}

impl Refusal {
    const fn status(&self) -> StatusCode {
        match self {
            // RFC 9112, 3.2.
            Self::NoHost(_) => StatusCode::BAD_REQUEST,
            Self::Host(_) | Self::Origin(_) | Self::NoOrigin(_) => StatusCode::FORBIDDEN,
        }
    }
}

impl Guard {
    /// Whether a request with these headers is served.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self, host: Option<&[u8]>, origin: Option<&[u8]>) -> Result<(), Refusal> {
        if self.is_open {
            return Ok(());
        }
        if let Some(host) = host.map(String::from_utf8_lossy) {
            match host_of(&host) {
                None => return Err(Refusal::NoHost(host.into_owned())),
                Some(name) if self.allows_host(&host, name) => {}
                Some(_) => return Err(Refusal::Host(host.into_owned())),
            }
        }
        if let Some(origin) = origin.map(String::from_utf8_lossy)
            && !self.allows_origin(&origin)
        {
            let is_one = origin == NO_ORIGIN || page_of(&origin).is_some();
            let refusal = if is_one { Refusal::Origin } else { Refusal::NoOrigin };
            return Err(refusal(origin.into_owned()));
        }
        Ok(())
    }

    /// What a request is answered where it is not served: a status and a line of text.
    pub fn refusal<B>(&self, request: &Request<B>) -> Option<(StatusCode, String)> {
        if *request.method() == Method::CONNECT {
            let sentence = "tapedeck stands in the place of a server and opens no tunnels\n";
            return Some((StatusCode::METHOD_NOT_ALLOWED, sentence.to_owned()));
        }
        let bad = |sentence: &str| Some((StatusCode::BAD_REQUEST, format!("{sentence}\n")));
        // What is neither a path nor a URL is read as the name of a host, which only `CONNECT` has there.
        if request.uri().scheme().is_none() && request.uri().authority().is_some() {
            return bad(
                "tapedeck: the request's target is none; it is a path that begins with `/`, or a URL",
            );
        }
        let headers = request.headers();
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().map(HeaderValue::as_bytes);
        if hosts.next().is_some() {
            return bad("tapedeck: the request names two hosts; send one `Host` header");
        }
        // Clients of HTTP/1.0 need not say it (RFC 9112, 3.2).
        if host.is_none() && request.version() == Version::HTTP_11 {
            return bad("tapedeck: the request names no host; HTTP/1.1 wants a `Host` header");
        }
        // That of an absolute target counts before `Host` (RFC 9112, 3.2.2).
        let target = request.uri().authority().and_then(|authority| authority.as_str().rsplit('@').next());
        let mut origins = headers.get_all(ORIGIN).iter().map(HeaderValue::as_bytes);
        let checked = self
            .check(target.map(str::as_bytes), None)
            .and_then(|()| self.check(host, None))
            .and_then(|()| origins.try_for_each(|origin| self.check(None, Some(origin))));
        checked.err().map(|refusal| (refusal.status(), format!("{refusal}\n")))
    }

    fn allows_host(&self, host: &str, name: &str) -> bool {
        is_local(name)
            || self
                .hosts
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(host) || allowed.eq_ignore_ascii_case(name))
    }

    fn allows_origin(&self, origin: &str) -> bool {
        page_of(origin).is_some_and(|(scheme, name)| is_of_web(scheme) && is_local(name))
            || self.origins.iter().any(|allowed| allowed == "*" || allowed.eq_ignore_ascii_case(origin))
    }
}

/// The origin of a page that has none to tell (RFC 6454, 7.1).
const NO_ORIGIN: &str = "null";

/// The scheme and the host of a page's origin; none where the text is no origin, or says more than one.
fn page_of(origin: &str) -> Option<(&str, &str)> {
    let (scheme, authority) = origin.split_once("://")?;
    let is_scheme = scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    Some((scheme, host_of(authority)?)).filter(|_| is_scheme)
}

/// The host in `host[:port]`; none where that is not all that stands there.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = origin::split(authority);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&byte);
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(is_name),
    };
    // One without digits is that of the scheme (RFC 3986, 3.2.3).
    let is_port = |port: &str| {
        port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
    };
    (is_host && port.is_none_or(is_port)).then_some(host)
}

fn is_of_web(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, host: &str, origin: Option<&str>) -> Result<(), Refusal> {
        guard.check(Some(host.as_bytes()), origin.map(str::as_bytes))
    }

    #[test]
    fn local_names_and_pages_are_served() {
        let guard = Guard::default();
        for host in
            ["127.0.0.1:9000", "localhost", "LOCALHOST:1", "[::1]:80", "127.0.0.2", "127.0.0.1:", "[::1]:"]
        {
            assert_eq!(check(&guard, host, None), Ok(()), "{host}");
            assert_eq!(check(&guard, host, Some(&format!("http://{host}"))), Ok(()), "{host}");
        }
        assert_eq!(guard.check(None, None), Ok(()));
    }

    #[test]
    fn a_request_names_its_host_once_and_its_target_no_other() {
        let status = |version: Version, target: &str, hosts: &[&str]| {
            let mut request = Request::builder().version(version).uri(target);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let refusal = Guard::default().refusal(&request.body(()).unwrap());
            refusal.map_or(200, |(status, _)| status.as_u16())
        };
        let local = "127.0.0.1:9000";
        for (target, hosts, expected) in [
            ("/mcp", &[local][..], 200),
            ("/mcp", &[], 400),
            ("/mcp", &[local, local], 400),
            ("/mcp", &["evil.example"], 403),
            ("/mcp", &["localhost:evil"], 400),
            ("http://localhost:evil/mcp", &[local], 400),
            ("http://localhost:9000/mcp", &[local], 200),
            ("http://evil.example/mcp", &[local], 403),
            ("http://localhost:80@evil.example/mcp", &[local], 403),
            ("http://localhost/mcp", &["evil.example"], 403),
            ("mcp", &[local], 400),
            ("localhost:9000", &[local], 400),
            ("http://localhost/mcp", &[], 400),
        ] {
            assert_eq!(status(Version::HTTP_11, target, hosts), expected, "{target} {hosts:?}");
        }
        assert_eq!(status(Version::HTTP_10, "/mcp", &[]), 200);
        assert_eq!(status(Version::HTTP_10, "http://evil.example/mcp", &[]), 403);
        let request = Request::builder().uri("mcp").header(HOST, local).body(()).unwrap();
        let (_, sentence) = Guard::default().refusal(&request).unwrap();
        assert!(sentence.contains("target is none"), "{sentence}");
        let tunnel = |target: &str| {
            let request = Request::connect(target).header(HOST, target).body(()).unwrap();
            Guard::default().refusal(&request).unwrap()
        };
        for target in ["evil.example:443", "localhost:9000"] {
            let (status, sentence) = tunnel(target);
            assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{target}");
            assert!(!sentence.contains("--allow"), "{sentence}");
        }
        let open = Guard { is_open: true, ..Guard::default() };
        let request = Request::builder().version(Version::HTTP_11).uri("/mcp").body(()).unwrap();
        assert_eq!(open.refusal(&request).map(|(status, _)| status.as_u16()), Some(400));
    }

    #[test]
    fn each_page_that_a_request_names_is_asked_for() {
        let status = |origins: [&str; 2]| {
            let request = Request::builder().header(HOST, "localhost").uri("/mcp");
            let request = origins.iter().fold(request, |request, origin| request.header(ORIGIN, *origin));
            Guard::default().refusal(&request.body(()).unwrap()).map(|(status, _)| status.as_u16())
        };
        assert_eq!(status(["http://localhost", "http://127.0.0.1:9000"]), None);
        assert_eq!(status(["http://localhost", "https://evil.example"]), Some(403));
        assert_eq!(status(["https://evil.example", "http://localhost"]), Some(403));
    }

    #[test]
    fn foreign_ones_are_not_unless_they_were_named() {
        let mut guard = Guard::default();
        for host in ["evil.example", "localhost.evil.example:9000", "127.0.0.1.evil.example", "10.0.0.1"] {
            assert_eq!(check(&guard, host, None), Err(Refusal::Host(host.to_owned())));
        }
        for origin in
            ["https://evil.example", "null", "http://localhost.evil.example", "chrome-extension://localhost"]
        {
            assert_eq!(check(&guard, "localhost", Some(origin)), Err(Refusal::Origin(origin.to_owned())));
        }
        guard.hosts.push("deck.example".to_owned());
        guard.origins.push("https://evil.example".to_owned());
        assert_eq!(check(&guard, "deck.example:9000", Some("https://evil.example")), Ok(()));
        guard.origins.extend(["null", "chrome-extension://abc"].map(str::to_owned));
        for origin in ["null", "chrome-extension://ABC"] {
            assert_eq!(check(&guard, "deck.example", Some(origin)), Ok(()), "{origin}");
        }
        guard.is_open = true;
        assert_eq!(check(&guard, "10.0.0.1", Some("null")), Ok(()));
    }

    #[test]
    fn what_only_begins_as_a_host_or_an_origin_does_is_none_and_no_hint_allows_it() {
        let mut guard = Guard::default();
        guard.hosts.push("deck.example".to_owned());
        for host in [
            "",
            ":9000",
            "127.0.0.1:evil",
            "127.0.0.1:99999",
            "127.0.0.1:+80",
            "127.0.0.1::",
            "127.0.0.1:80:evil.example",
            "127.0.0.1@evil.example",
            "127.0.0.1, evil.example",
            "127.0.0.1/evil",
            "localhost evil",
            "[::1]evil",
            "[::1].evil.example:80",
            "[localhost]",
            "[127.0.0.1]",
            "deck.example:evil",
        ] {
            let refusal = Refusal::NoHost(host.to_owned());
            assert!(!refusal.to_string().contains("--allow"), "{refusal}");
            assert_eq!(check(&guard, host, None), Err(refusal), "{host}");
            let origin = format!("http://{host}");
            let refusal = Refusal::NoOrigin(origin.clone());
            assert!(!refusal.to_string().contains("--allow"), "{refusal}");
            assert_eq!(check(&guard, "localhost", Some(&origin)), Err(refusal), "{origin}");
        }
        for origin in [
            "",
            "localhost",
            "http:localhost",
            "://localhost",
            "ht tp://localhost",
            "1http://localhost",
            "http://localhost/",
            "http://localhost?",
            "http://localhost#evil",
            "http://127.0.0.1:9000, http://evil.example",
            "http://127.0.0.1:9000 http://evil.example",
            "http://evil.example://localhost",
            "null null",
        ] {
            let refusal = Refusal::NoOrigin(origin.to_owned());
            assert_eq!(refusal.status(), StatusCode::FORBIDDEN);
            assert_eq!(check(&guard, "localhost", Some(origin)), Err(refusal), "{origin}");
        }
    }
}
