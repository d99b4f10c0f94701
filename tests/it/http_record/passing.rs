//! The front without a recording: the same traffic, and nobody looks at it.

use super::*;

#[test]
fn what_is_not_recorded_passes_as_what_is() {
    let scene = Scene::passing();
    let (upstream, ours) = (scene.upstream(), scene.origin.clone());
    let host = ours.trim_start_matches("http://").to_owned();
    let mut client = scene.client();
    client.say(call(&host));
    let mut server = scene.accept();
    server.takes_call();
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    // An event passes as it comes, however it is spelled.
    client.say(call(&host));
    server.takes_call();
    server.say(STREAM);
    client.hears(STREAM);
    for text in [": hi\r\n\r\n", "data: ", "1\n\n"] {
        server.say(chunk(text));
        client.hears(chunk(text));
    }
    server.say("0\r\n\r\n");
    client.hears("0\r\n\r\n");
    // Its own address is still ours.
    let endpoint =
        |origin: &str| STREAM.to_owned() + &chunk(&format!("event: endpoint\ndata: {origin}/m\n\n"));
    client.say(format!("GET /sse HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    server.head();
    server.say(endpoint(&format!("http://{upstream}")));
    client.hears(endpoint(&ours));
    server.reset();
    assert_eq!(client.rest(), (String::new(), true));
    assert_eq!(scene.end(), Vec::<String>::new());
}

#[test]
fn a_client_that_leaves_takes_its_call_with_it_where_nobody_records_the_answer() {
    let scene = Scene::passing();
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    drop(client);
    assert_eq!(server.rest(), (String::new(), false));
    scene.end();
}
