//! What speaks where a session cannot start.
//!
//! Clients swallow a server's stderr and its exit status; the text of an error answer is what every one of them
//! shows. So each request is answered with the sentence that would otherwise stand on a terminal.

use std::io::{self, Read, Write};

use crate::wire::{
    jsonrpc::{self, Kind, Message},
    lines::{Line, LineSplitter},
};

/// Longer lines are no requests that anybody waits for here.
const LONGEST: usize = 64 << 20;

/// Answers each request with `sentence` until `input` ends or the client takes no more answers.
///
/// # Errors
/// When `input` cannot be read.
pub fn speak(sentence: &str, mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut splitter = LineSplitter::new(LONGEST);
    let (mut room, mut answers) = (vec![0; 64 << 10], Vec::new());
    loop {
        let length = match input.read(&mut room) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result?,
        };
        if length == 0 {
            return Ok(());
        }
        answers.clear();
        splitter.feed(&room[..length], |line| {
            if let Line::Whole(line) = line {
                answer(&Message::read(line), sentence, &mut answers);
            }
        });
        if output.write_all(&answers).and_then(|()| output.flush()).is_err() {
            return Ok(());
        }
    }
}

fn answer(message: &Message<'_>, sentence: &str, out: &mut Vec<u8>) {
    match message.kind {
        Kind::Request => {
            answer_one(message, sentence, out);
            out.push(b'\n');
        }
        Kind::Batch => {
            let start = out.len();
            for request in message.members().filter(|member| member.kind == Kind::Request) {
                out.push(if out.len() == start { b'[' } else { b',' });
                answer_one(&request, sentence, out);
            }
            if out.len() > start {
                out.extend_from_slice(b"]\n");
            }
        }
        Kind::Notification | Kind::Result | Kind::Error | Kind::Noise => {}
    }
}

fn answer_one(request: &Message<'_>, sentence: &str, out: &mut Vec<u8>) {
    let id = request.id().unwrap_or(b"null");
    out.extend_from_slice(&jsonrpc::error(id, jsonrpc::NO_ANSWER, sentence, None));
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &str = concat!(
        "\n",
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#,
        "\r\n",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "\nno message\n",
        r#"{"method":"tools/call","id":"a\u0022b","jsonrpc":"2.0"}"#,
        "\n",
        r#"[{"jsonrpc":"2.0","id":7,"method":"a"},{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":8,"method":"c"}]"#,
        "\n",
        r#"[{"jsonrpc":"2.0","method":"b"}]"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":10,"method":"cut o"#,
    );

    const OUTPUT: &str = concat!(
        r#"{"jsonrpc":"2.0","id":0,"error":{"code":-33001,"message":"no \"c.json\""}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":"a\u0022b","error":{"code":-33001,"message":"no \"c.json\""}}"#,
        "\n",
        r#"[{"jsonrpc":"2.0","id":7,"error":{"code":-33001,"message":"no \"c.json\""}},"#,
        r#"{"jsonrpc":"2.0","id":8,"error":{"code":-33001,"message":"no \"c.json\""}}]"#,
        "\n",
    );

    #[test]
    fn requests_are_answered_with_their_ids_wherever_the_input_is_cut() {
        for cut in 0..=INPUT.len() {
            let (head, tail) = INPUT.as_bytes().split_at(cut);
            let mut output = Vec::new();
            speak("no \"c.json\"", head.chain(tail), &mut output).unwrap();
            assert_eq!(String::from_utf8(output).unwrap(), OUTPUT, "cut at {cut}");
        }
    }

    #[test]
    fn each_answer_goes_out_before_more_is_read() {
        struct Checked<'a>(&'a std::cell::RefCell<Vec<u8>>, usize);
        impl Read for Checked<'_> {
            fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
                let answers = self.0.borrow().iter().filter(|byte| **byte == b'\n').count();
                assert_eq!(answers, self.1);
                self.1 += 1;
                let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n";
                let length = if self.1 > 3 { 0 } else { request.len() };
                room[..length].copy_from_slice(&request[..length]);
                Ok(length)
            }
        }
        struct Shared<'a>(&'a std::cell::RefCell<Vec<u8>>);
        impl Write for Shared<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.borrow_mut().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let output = std::cell::RefCell::default();
        speak("s", Checked(&output, 0), Shared(&output)).unwrap();
    }
}
