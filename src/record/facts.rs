//! What a session's messages say of its two sides.

use crate::wire::{
    Span,
    jsonrpc::{Kind, Message, text},
    scan,
};

/// Longer names are no names.
const LONGEST: usize = 200;

/// Who spoke, and by which revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The revision: of the result of `initialize`, else the one that the requests carry.
    pub protocol: Option<String>,
    /// The client's name.
    pub client: Option<String>,
    /// The server's name and version.
    pub server: Option<String>,
    is_negotiated: bool,
}

impl Facts {
    /// Reads a client request.
    pub(super) fn request(&mut self, request: &Message<'_>) {
        if request.method() == "initialize" {
            self.client = string(request, request.params_span(), "/clientInfo/name").or(self.client.take());
        } else if request.is_modern() {
            let meta = |name: &str| {
                string(request, request.params_span(), &format!("/_meta/io.modelcontextprotocol~1{name}"))
            };
            self.protocol = self.protocol.take().or_else(|| meta("protocolVersion"));
            self.client = self.client.take().or_else(|| meta("clientInfo/name"));
        }
    }

    /// Reads a response; `is_initialize` says that it answers that request.
    pub(super) fn response(&mut self, response: &Message<'_>, is_initialize: bool) {
        if response.kind != Kind::Result || !(is_initialize || self.server.is_none()) {
            return;
        }
        let at = |pointer: &str| string(response, response.outcome_span(), pointer);
        if is_initialize && !self.is_negotiated {
            self.is_negotiated = true;
            self.protocol = at("/protocolVersion").or(self.protocol.take());
        }
        // A modern server names itself in the metadata of any result.
        let info = if is_initialize { "/serverInfo" } else { "/_meta/io.modelcontextprotocol~1serverInfo" };
        let named = at(&format!("{info}/name")).map(|name| match at(&format!("{info}/version")) {
            Some(version) => format!("{name} {version}"),
            None => name,
        });
        self.server = named.or(self.server.take());
    }
}

fn string(message: &Message<'_>, root: Option<Span>, pointer: &str) -> Option<String> {
    let raw = scan::pointer(message.bytes, root?, pointer)?.of(message.bytes);
    let is_name = raw.first() == Some(&b'"') && raw.len() <= LONGEST;
    is_name.then(|| text(raw).into_owned())
}
