//! Scheme, host and port of an address, and putting one in the place of another.

use std::{fmt, net::IpAddr};

use hyper::Uri;

/// An origin, such as `http://127.0.0.1:9000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    is_secure: bool,
    host: String,
    port: u16,
    authority: String,
}

/// An address that cannot be a server's. It is not told: credentials may stand in it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// It is no absolute URL.
    #[error("that is no address of a server; one looks like http://127.0.0.1:9000/mcp")]
    NoUrl,
    /// A scheme that no server is reached by.
    #[error("the address begins neither with http:// nor with https://")]
    Scheme,
    /// Credentials in an address end up in logs.
    #[error("the address holds a name or a password; give it as a header instead")]
    Credentials,
}

impl Origin {
    /// The origin of a URL, and its path with its query.
    ///
    /// # Errors
    /// When that is no address of a server.
    pub fn of_url(url: &str) -> Result<(Self, String), AddressError> {
        let uri: Uri = url.parse().map_err(|_| AddressError::NoUrl)?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) => return Err(AddressError::Scheme),
            None => return Err(AddressError::NoUrl),
        };
        let authority = uri.authority().ok_or(AddressError::NoUrl)?;
        if authority.as_str().contains('@') {
            return Err(AddressError::Credentials);
        }
        let origin = Self::new(is_secure, authority.as_str());
        let origin = origin.ok_or(AddressError::NoUrl)?;
        Ok((origin, uri.path_and_query().map_or("/", |path| path.as_str()).to_owned()))
    }

    /// The origin with this authority, `host` or `host:port`.
    pub fn new(is_secure: bool, authority: &str) -> Option<Self> {
        let (host, port) = split(authority);
        let port = match port {
            Some("") | None => default_port(is_secure),
            Some(port) => port.parse().ok()?,
        };
        let host = host.to_ascii_lowercase();
        (!host.is_empty()).then(|| Self { is_secure, host, port, authority: authority.to_owned() })
    }

    /// Whether it is reached by TLS.
    pub const fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// The host's name, or its address without brackets.
    pub fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Host, and port where it was given.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// What stands behind this origin in `url`: nothing, or something that begins with a path, a query or a fragment.
    pub fn strip<'a>(&self, url: &'a [u8]) -> Option<&'a [u8]> {
        let colon = memchr::memchr(b':', url).filter(|&at| at < 6);
        let (scheme, rest) = match colon {
            Some(colon) if url[colon..].starts_with(b"://") => (Some(&url[..colon]), &url[colon + 3..]),
            _ => (None, url.strip_prefix(b"//")?),
        };
        if scheme.is_some_and(|scheme| !scheme.eq_ignore_ascii_case(self.scheme().as_bytes())) {
            return None;
        }
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\\'));
        let (authority, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let other = Self::new(self.is_secure, std::str::from_utf8(authority).ok()?)?;
        (other.host == self.host && other.port == self.port).then_some(rest)
    }

    /// `url` with another origin in the place of this one; none where it does not begin with this one.
    pub fn replace(&self, url: &[u8], by: &str) -> Option<Vec<u8>> {
        self.strip(url).map(|rest| [by.as_bytes(), rest].concat())
    }

    const fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.authority)
    }
}

const fn default_port(is_secure: bool) -> u16 {
    if is_secure { 443 } else { 80 }
}

/// Host and port of an authority.
pub(super) fn split(authority: &str) -> (&str, Option<&str>) {
    let host_end = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    match authority[host_end..].find(':') {
        Some(colon) => (&authority[..host_end + colon], Some(&authority[host_end + colon + 1..])),
        None => (authority, None),
    }
}

/// Whether only this machine is meant.
pub(super) fn is_local(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name.eq_ignore_ascii_case("localhost.")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let (origin, path) = Origin::of_url("http://Example.com:9000/mcp?x=1%2F2").unwrap();
        assert_eq!(
            (origin.host(), origin.port(), origin.authority()),
            ("example.com", 9000, "Example.com:9000")
        );
        assert_eq!((origin.to_string().as_str(), path.as_str()), ("http://Example.com:9000", "/mcp?x=1%2F2"));
        let (origin, path) = Origin::of_url("https://[::1]").unwrap();
        assert_eq!(
            (origin.host(), origin.port(), origin.is_secure(), path.as_str()),
            ("::1", 443, true, "/")
        );
        // A port without digits is that of the scheme.
        let (origin, _) = Origin::of_url("http://a:/mcp").unwrap();
        assert_eq!((origin.host(), origin.port()), ("a", 80));
        for bad in
            ["", "mcp", "/mcp", "localhost:9000", "ftp://a/", "http://", "http://a:b/", "http://u:p@a/"]
        {
            assert!(Origin::of_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_the_same_origin_is_replaced() {
        let origin = Origin::new(false, "example.com").unwrap();
        let replaced = |url: &str| {
            let url = origin.replace(url.as_bytes(), "http://127.0.0.1:1")?;
            Some(String::from_utf8(url).unwrap())
        };
        for (url, expected) in [
            ("http://example.com", "http://127.0.0.1:1"),
            ("http://example.com:80/mcp/?a#b", "http://127.0.0.1:1/mcp/?a#b"),
            ("HTTP://EXAMPLE.com/mcp", "http://127.0.0.1:1/mcp"),
            ("//example.com/mcp", "http://127.0.0.1:1/mcp"),
        ] {
            assert_eq!(replaced(url).as_deref(), Some(expected), "{url}");
        }
        for other in [
            "",
            "/mcp",
            "https://example.com/",
            "http://example.com:8080/",
            "http://example.com.evil/",
            "x://",
        ] {
            assert_eq!(replaced(other), None, "{other}");
        }
    }
}
