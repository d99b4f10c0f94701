//! Which proxy a server is reached through, as the environment says it (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`).

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::header::HeaderValue;

use super::origin::{self, Origin};

/// What the environment says of proxies.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    secure: Option<Proxy>,
    plain: Option<Proxy>,
    none: Vec<String>,
}

/// A proxy, spoken to in plain HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Its host, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What it is to be shown, where its address held a name.
    pub credentials: Option<HeaderValue>,
    /// The variable that named it.
    pub variable: &'static str,
}

/// A variable that names no proxy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{variable} names no proxy that tapedeck can use: {why}; one looks like http://proxy.example:3128")]
pub struct ProxyError {
    variable: &'static str,
    why: &'static str,
}

impl Proxies {
    /// Reads the variables; lower case goes first, as in other programs.
    ///
    /// # Errors
    /// When one of them holds something else.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let proxy = |names: &[&'static str]| {
            let found = names
                .iter()
                .find_map(|name| Some((*name, variable(name).filter(|value| !value.is_empty())?)));
            found.map(|(name, value)| Proxy::read(name, &value)).transpose()
        };
        let none = ["no_proxy", "NO_PROXY"].iter().find_map(|name| variable(name)).unwrap_or_default();
        let none =
            none.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty());
        Ok(Self {
            secure: proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])?,
            plain: proxy(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])?,
            none: none.collect(),
        })
    }

    /// The proxy for a server; none for one on this machine.
    pub fn of(&self, origin: &Origin) -> Option<&Proxy> {
        let proxy = if origin.is_secure() { &self.secure } else { &self.plain };
        let is_direct = || {
            origin::is_local(origin.host())
                || self.none.iter().any(|name| covers(name, origin.host(), origin.port()))
        };
        proxy.as_ref().filter(|_| !is_direct())
    }
}

impl Proxy {
    fn read(variable: &'static str, value: &str) -> Result<Self, ProxyError> {
        let wrong = |why| ProxyError { variable, why };
        let authority = match value.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(wrong("it does not begin with http://")),
            None => value,
        };
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user), authority),
            None => (None, authority),
        };
        // Without a port it is the one of HTTP.
        let origin = Origin::new(false, authority).ok_or_else(|| wrong("there is no host and port"))?;
        let credentials = user.map(|user| {
            let value = format!("Basic {}", STANDARD.encode(unescape(user)));
            HeaderValue::from_str(&value).map(|mut value| {
                value.set_sensitive(true);
                value
            })
        });
        let credentials = credentials.transpose().map_err(|_| wrong("its user's name cannot be sent"))?;
        Ok(Self { host: origin.host().to_owned(), port: origin.port(), credentials, variable })
    }
}

/// Undoes percent-encoding.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, next)) = rest.split_first() {
        let digits = next.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%') {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &next[2..];
            }
            None => {
                bytes.push(byte);
                rest = next;
            }
        }
    }
    bytes
}

/// Whether an entry of `NO_PROXY` covers a host: all, a name and the names below it, an address, a network.
fn covers(entry: &str, host: &str, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some((network, bits)) = entry.split_once('/') {
        let ours =
            host.parse::<IpAddr>().ok().zip(network.parse::<IpAddr>().ok()).zip(bits.parse::<u32>().ok());
        return ours.is_some_and(|((host, network), bits)| is_in(host, network, bits));
    }
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok_and(|address| host.parse() == Ok(address)) {
        return true;
    }
    let (name, entry_port) = origin::split(entry);
    if entry_port.is_some_and(|entry_port| entry_port.parse() != Ok(port)) {
        return false;
    }
    let name =
        name.trim_start_matches("*.").trim_start_matches('.').trim_start_matches('[').trim_end_matches(']');
    let below = host.len().checked_sub(name.len()).filter(|_| !name.is_empty() && host.ends_with(name));
    below.is_some_and(|below| below == 0 || host.as_bytes()[below - 1] == b'.')
}

fn is_in(host: IpAddr, network: IpAddr, bits: u32) -> bool {
    let same = |host: u128, network: u128, length: u32| {
        bits <= length && (bits == 0 || host >> (length - bits) == network >> (length - bits))
    };
    match (host, network) {
        (IpAddr::V4(host), IpAddr::V4(network)) => {
            same(u32::from(host).into(), u32::from(network).into(), 32)
        }
        (IpAddr::V6(host), IpAddr::V6(network)) => same(host.into(), network.into(), 128),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, ProxyError> {
        let find = |name: &str| variables.iter().find(|(found, _)| *found == name);
        Proxies::read(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    fn of<'a>(proxies: &'a Proxies, url: &str) -> Option<&'a str> {
        proxies.of(&Origin::of_url(url).unwrap().0).map(|proxy| proxy.host.as_str())
    }

    #[test]
    fn each_scheme_has_its_own_and_lower_case_goes_first() {
        let proxies =
            proxies(&[("https_proxy", "http://a:1"), ("HTTPS_PROXY", "b:2"), ("HTTP_PROXY", "c")]).unwrap();
        assert_eq!(of(&proxies, "https://x.example/"), Some("a"));
        assert_eq!(of(&proxies, "http://x.example/"), Some("c"));
        assert_eq!(proxies.plain.as_ref().unwrap().port, 80);
        for url in ["http://localhost:9/", "https://127.0.0.5/", "http://[::1]:8/"] {
            assert_eq!(of(&proxies, url), None, "{url}");
        }
    }

    #[test]
    fn exceptions_are_names_addresses_and_networks() {
        let none = "a.example, .b.example,*.c.example,d.example:8443,10.0.0.0/8,192.168.1.7,fd00::/8";
        let proxies = proxies(&[("ALL_PROXY", "p:1"), ("NO_PROXY", none)]).unwrap();
        for url in [
            "https://a.example/",
            "https://x.A.example/",
            "https://b.example/",
            "https://x.c.example/",
            "https://d.example:8443/",
            "https://10.1.2.3/",
            "https://192.168.1.7:1/",
            "https://[fd00::1]/",
        ] {
            assert_eq!(of(&proxies, url), None, "{url}");
        }
        for url in ["https://xa.example/", "https://d.example/", "https://11.0.0.1/", "https://[fe00::1]/"] {
            assert_eq!(of(&proxies, url), Some("p"), "{url}");
        }
        let proxies = self::proxies(&[("ALL_PROXY", "p:1"), ("no_proxy", "*")]).unwrap();
        assert_eq!(of(&proxies, "https://x.example/"), None);
    }

    #[test]
    fn a_name_and_a_password_are_shown_to_the_proxy_and_to_nobody_else() {
        let proxies = proxies(&[("https_proxy", "http://me:p%40ss@proxy:3128/")]).unwrap();
        let proxy = proxies.secure.as_ref().unwrap();
        assert_eq!(proxy.credentials.as_ref().unwrap(), "Basic bWU6cEBzcw==");
        assert!(!format!("{proxy:?}").contains("bWU6"));
        assert!(
            self::proxies(&[("HTTPS_PROXY", "socks5://p:1")])
                .unwrap_err()
                .to_string()
                .contains("HTTPS_PROXY")
        );
        assert!(self::proxies(&[("HTTPS_PROXY", "http://:1")]).is_err());
    }
}
