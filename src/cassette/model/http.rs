//! What an exchange has of HTTP.

/// The HTTP request and response that carried an exchange.
///
/// What is as usual is not written. Usual is: of a request that is a message, `POST` to its session's path; of a
/// response to a request, status 200; to anything else, status 202 with an empty body; of an event stream, content
/// type `text/event-stream`; of a body that is a message, `application/json`; of an empty one, none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http {
    /// `path`: path and query of a request that is a message, where they are not those of its session.
    pub path: Option<Box<str>>,
    /// `request`: the request's headers that its answer can depend on, names in lower case.
    pub request: Vec<Header>,
    /// `auth`: whether the request carried credentials.
    pub auth: bool,
    /// `status`; none where it is the usual one, or no response came.
    pub status: Option<u16>,
    /// `stream`: whether the response is an event stream.
    pub stream: bool,
    /// `headers`: the response's headers that are not derived, names in lower case.
    pub headers: Vec<Header>,
    /// `again`: ids of events that had come elsewhere in the session and came once more on this response.
    pub again: Vec<Box<str>>,
    /// `until_delete`: whether the server ended the stream once the session's `DELETE` had come, before it answered
    /// that.
    pub until_delete: bool,
    /// `end`: how the response ended, where not in good order.
    pub end: Option<StreamEnd>,
    /// `partial`, `partial_base64`: what the response had sent of a message, or of the lines of an event, when it ended
    /// or its client left; or what came behind its message.
    pub partial: Option<Box<[u8]>>,
}

/// A header and all its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name in lower case.
    pub name: Box<str>,
    /// Its values in order, as bytes (ISO-8859-1 in the file): one for each line of it. No value says that it was not
    /// sent although it usually is.
    pub values: Vec<Box<[u8]>>,
}

/// How a response ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// `cut`: the connection was closed.
    Cut,
    /// `reset`: the connection was reset.
    Reset,
}

impl StreamEnd {
    /// Both words.
    pub const ALL: [Self; 2] = [Self::Cut, Self::Reset];

    /// The word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Reset => "reset",
        }
    }
}

/// A stream that an item travelled on, where that is not its exchange's own.
///
/// The own stream is the response to the client's message; in a session over HTTP+SSE, the session's event stream.
/// A push has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// `get`: the session's `GET` stream.
    Get,
    /// `resume`: the `GET` stream that went on with an earlier one, named by `Last-Event-ID`.
    Resume,
    /// `post`: the response to the client's message, in a session over HTTP+SSE; else the response to another
    /// message of the client.
    Post,
    /// `sse`: the event stream of HTTP+SSE.
    Sse,
}

impl On {
    /// The four words.
    pub const ALL: [Self; 4] = [Self::Get, Self::Resume, Self::Post, Self::Sse];

    /// The word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Resume => "resume",
            Self::Post => "post",
            Self::Sse => "sse",
        }
    }
}

/// Fields of an item's event beside its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sse {
    /// `id`, where one was sent.
    pub id: Option<Box<str>>,
    /// `event`: its type.
    pub event: EventType,
    /// `retry`, in milliseconds, where it was sent.
    pub retry: Option<u64>,
    /// `"data": false`: it had no line `data`, which is not the same as an empty one.
    pub no_data: bool,
}

/// The type of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventType {
    /// Not written: a line `event: message`.
    #[default]
    Message,
    /// `null`: no line, which means `message` too.
    Unnamed,
    /// Any other.
    Named(Box<str>),
}
