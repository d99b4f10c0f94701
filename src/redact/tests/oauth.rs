//! What OAuth carries in addresses, forms and JSON.

use super::{plain, redact, session};

#[test]
fn the_code_that_a_redirect_grants_is_hidden_and_found_again() {
    let mut redactor = plain();
    assert_eq!(
        redactor.header_value("Location", "http://localhost:9/cb?code=c53-grant-77cc&state=s1"),
        "http://localhost:9/cb?code=<redacted:oauth-1>&state=<redacted:oauth-2>"
    );
    assert_eq!(redactor.url("/cb?code=c53-grant-77cc"), "/cb?code=<redacted:oauth-1>");
    // What follows it, where the redirect was another's.
    for (url, hidden) in [
        (
            "/cb?state=c53-state-77cc&code=c53-grant-88dd",
            "/cb?state=<redacted:oauth-3>&code=<redacted:oauth-4>",
        ),
        ("/oauth/Callback?code=c53-grant-99ee", "/oauth/Callback?code=<redacted:oauth-5>"),
    ] {
        assert_eq!(redactor.url(url), hidden);
    }
    assert_eq!(redactor.url("/list?code=c53-grant-00ff"), "/list?code=c53-grant-00ff");
    for none in ["/place?code=US&state=CA", "http://h/a"] {
        assert_eq!(redactor.header_value("location", none), none);
    }
}

#[test]
fn a_code_that_stands_alone_is_told_by_its_path_or_by_its_look() {
    for path in
        ["/auth", "/auth/x", "/cb", "/CB/", "/authorize", "/token", "/login", "/.well-known/x", "/my-oauth2"]
    {
        let of = |code: &str| format!("{path}?x=1&code={code}");
        assert_eq!(plain().url(&of("c53grant")), of("<redacted:oauth-1>"));
        assert_eq!(plain().url(&of("FR")), of("FR"));
        assert_eq!(plain().url(&of("E1234")), of("E1234"));
        let text = |code: &str| format!(r#"{{"text":"see https://h.example{}"}}"#, of(code));
        assert_eq!(redact(&mut plain(), &text("c53grant")), text("<redacted:oauth-1>"));
    }
    for code in [
        "SplxlOBeZQQYbYS6WxSbIA",
        "a1b2c3d4e5f6a7b8c9d0",
        "4%2F0AX4XfWhz9QeT1kLm3n",
        "550e8400-e29b-41d4-a716-446655440000",
        "M.C507_BAY.2.U.0b1c2d3e-4f5a",
    ] {
        let of = |code: &str| format!("/mcp?v=1&code={code}");
        assert_eq!(plain().url(&of(code)), of("<redacted:oauth-1>"));
        let text = |code: &str| format!(r#"{{"text":"see https://h.example{}"}}"#, of(code));
        assert_eq!(redact(&mut plain(), &text(code)), text("<redacted:oauth-1>"));
    }
    for stays in [
        "/items?code=FR",
        "/items?code=E_NOT_FOUND_IN_ANY_OF_THEM",
        "/items?code=ORDER-2024-000123-SUMMER",
        "/items?code=90210-1234-5678-9012-3456",
        "/authors?code=c53-grant",
        "/tokens/cba?code=c53-grant",
        "/play?code=print(a1b2)+%3D%3D+x1y2z3(4)",
        "/items?postcode=SplxlOBeZQQYbYS6WxSbIA",
    ] {
        assert_eq!(plain().url(stays), stays);
        let text = format!(r#"{{"text":"OAuth: a callback https://h.example{stays}"}}"#);
        assert_eq!(redact(&mut plain(), &text), text);
    }
}

#[test]
fn parameters_are_known_in_other_spellings() {
    for (address, hidden) in [
        ("/cb?CODE=c53grant", "/cb?CODE=<>"),
        ("/cb?a[code]=c53grant&a[x]=1", "/cb?a[code]=<>&a[x]=1"),
        ("/cb?a%5Bcode%5D[]=c53grant", "/cb?a%5Bcode%5D[]=<>"),
        ("/cb?c%6Fde=c53grant", "/cb?c%6Fde=<>"),
        ("/cb;code=c53grant?y=1", "/cb;code=<>?y=1"),
        ("/cb;v=2;code=c53grant", "/cb;v=2;code=<>"),
        ("/x?Code=SplxlOBeZQQYbYS6WxSbIA", "/x?Code=<>"),
        ("/x?%63ode=c53grant&client%5fid=me", "/x?%63ode=<>&client%5fid=me"),
        ("/x?%73tate=&a[code]=c53grant", "/x?%73tate=&a[code]=<>"),
    ] {
        let hidden = hidden.replace("<>", "<redacted:oauth-1>");
        assert_eq!(plain().url(address), hidden);
        let text = |address: &str| format!(r#"{{"text":"see https://h.example{address} now"}}"#);
        assert_eq!(redact(&mut plain(), &text(address)), text(&hidden));
    }
    assert_eq!(
        plain().url("/x?access%5Ftoken=t1&p%61ssword=p1"),
        "/x?access%5Ftoken=<redacted:token-1>&p%61ssword=<redacted:password-1>"
    );
    assert_eq!(plain().header_value("location", "/done?Code=c53grant"), "/done?Code=<redacted:oauth-1>");
    for stays in [
        "/list?CODE=c53grant",
        "/list?filter[state]=open&filter[code]=E_NOT_FOUND",
        "/list;code=c53grant",
        "/cb?codes=c53grant",
        "/cb?a[code]b=c53grant",
        "/cb?code[0=c53grant",
        "/cb;x?y",
    ] {
        assert_eq!(plain().url(stays), stays);
        let text = format!(r#"{{"text":"see https://h.example{stays}"}}"#);
        assert_eq!(redact(&mut plain(), &text), text);
    }
}

#[test]
fn what_a_token_request_carries_is_hidden_from_the_first_one_on() {
    session(
        &mut plain(),
        &[
            (
                "code=authcode12345&grant_type=authorization_code&redirect_uri=http%3A%2F%2Fh%2Fcb&client_id=me&code_verifier=cv12345678",
                "code=<redacted:oauth-1>&grant_type=authorization_code&redirect_uri=http%3A%2F%2Fh%2Fcb&client_id=me&code_verifier=<redacted:oauth-2>",
            ),
            (r#"["was authcode12345"]"#, r#"["was <redacted:oauth-1>"]"#),
            (
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=dc12345678&client_id=me",
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=<redacted:oauth-3>&client_id=me",
            ),
            (
                "grant_type=x&assertion=as12345678&subject_token=st12345678&actor_token=at12345678&client_assertion=ca12345678",
                "grant_type=x&assertion=<redacted:oauth-4>&subject_token=<redacted:token-1>&actor_token=<redacted:token-2>&client_assertion=<redacted:oauth-5>",
            ),
            (
                "grant_type=x&a[code]=bracketed1&c%6Fde=encoded123",
                "grant_type=x&a[code]=<redacted:oauth-6>&c%6Fde=<redacted:oauth-7>",
            ),
            // A pushed authorization request, and one that has no other sign than its verifier.
            (
                "response_type=code&client_id=me&state=st1&code_challenge=cc1",
                "response_type=code&client_id=me&state=<redacted:oauth-8>&code_challenge=<redacted:oauth-9>",
            ),
            (
                "code=another12345&code_verifier=cv12345678",
                "code=<redacted:oauth-10>&code_verifier=<redacted:oauth-2>",
            ),
            (
                r#"{"code": "authcode33333", "grant_type": "authorization_code", "client_id": "me"}"#,
                r#"{"code": "<redacted:oauth-11>", "grant_type": "authorization_code", "client_id": "me"}"#,
            ),
            (
                r#"{"gr\u0061nt_type":"x","assertion":"a\"b"}"#,
                r#"{"gr\u0061nt_type":"x","assertion":"<redacted:oauth-12>"}"#,
            ),
            (
                r#"{"device_code":"dev-1","user_code":"WDJB-MJHT","verification_uri":"https://h/d"}"#,
                r#"{"device_code":"<redacted:oauth-13>","user_code":"<redacted:oauth-14>","verification_uri":"https://h/d"}"#,
            ),
        ],
    );
}

#[test]
fn a_token_request_is_found_in_texts_and_in_json_inside_them() {
    session(
        &mut plain(),
        &[
            (
                r#"{"text":"ran curl -d 'code=c0de1&grant_type=authorization_code' https://h"}"#,
                r#"{"text":"ran curl -d 'code=<redacted:oauth-1>&grant_type=authorization_code' https://h"}"#,
            ),
            (
                r#"{"text":"grant_type=authorization_code\u0026code=c0de2"}"#,
                r#"{"text":"grant_type=authorization_code\u0026code=<redacted:oauth-2>"}"#,
            ),
            (
                r#"{"text":"{\"grantType\":\"authorization_code\",\"code\":\"c0de3\"}"}"#,
                r#"{"text":"{\"grantType\":\"authorization_code\",\"code\":\"<redacted:oauth-3>\"}"}"#,
            ),
            (
                r#"{"params":{"arguments":{"code":"c0de4","grant_type":"authorization_code"}}}"#,
                r#"{"params":{"arguments":{"code":"<redacted:oauth-4>","grant_type":"authorization_code"}}}"#,
            ),
        ],
    );
}

#[test]
fn codes_and_states_of_others_stay() {
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":{"code":"E_NOT_FOUND"}}}"#,
        r#"{"method":"tools/call","params":{"name":"run","arguments":{"code":"print('grant_type')","state":"on"}}}"#,
        r#"{"code":"ordinary-code","client_id":"me","inner":{"grant_type":"x"}}"#,
        r#"{"inputSchema":{"properties":{"grant_type":{"type":"string"},"code":{"description":"the code"}}}}"#,
        r#"{"grant_types":["authorization_code"],"grant_types_supported":["x"],"state":"open"}"#,
        "code=US&state=CA&page=2",
        r#"{"text":"code=12345678 where grant_type=x"}"#,
    ] {
        assert_eq!(redact(&mut plain(), message), message);
    }
}

#[test]
fn a_parameter_is_found_again_without_its_percent_signs() {
    let form = "grant_type=x&code=4%2F0AdeuCode99";
    session(
        &mut plain(),
        &[
            (form, "grant_type=x&code=<redacted:oauth-1>"),
            (r#"["4/0AdeuCode99"]"#, r#"["<redacted:oauth-1>"]"#),
            (r#"{"u":"https://h/?token=a%2Bb%2Bc%2Bd9"}"#, r#"{"u":"https://h/?token=<redacted:token-1>"}"#),
            (r#"["a+b+c+d9"]"#, r#"["<redacted:token-1>"]"#),
        ],
    );
    let mut redactor = plain();
    assert_eq!(redactor.url("/cb?code=4%2F0AdeuCode99&iss=x"), "/cb?code=<redacted:oauth-1>&iss=x");
    session(
        &mut redactor,
        &[(form, "grant_type=x&code=<redacted:oauth-1>"), ("4/0AdeuCode99", "<redacted:oauth-1>")],
    );
}

#[test]
fn a_code_that_a_form_posts_is_hidden() {
    let hides = |text: &str| {
        let (mut grant, mut number) = (String::new(), 0);
        for part in text.split_inclusive("<>") {
            grant.push_str(part.trim_end_matches("<>"));
            if part.ends_with("<>") {
                number += 1;
                grant.push_str(&format!("<redacted:oauth-{number}>"));
            }
        }
        let spelled = text.replacen("<>", "Splxl0BeZQ", 1).replacen("<>", "xyz-state", 1);
        let string = |text: &str| format!(r#"{{"v":"{text}"}}"#);
        assert_eq!(plain().text(&spelled), grant);
        assert_eq!(redact(&mut plain(), &string(&spelled)), string(&grant));
    };
    for text in [
        "state=<>&code=<>",
        "code=<>&state=<>",
        "code=<>&scope=read",
        "code=<>&session_state=abc1",
        "code=<>&iss=https%3A%2F%2Fh",
        "ran curl -d code=<>&state=<> h",
        "GET /there?code=<>&state=<> HTTP/1.1",
    ] {
        hides(text);
    }
    let alone = "code=SplxlOBeZQQ4bYS6WxSbIA";
    assert_eq!(redact(&mut plain(), alone), "code=<redacted:oauth-1>");
    assert_eq!(
        redact(&mut plain(), &format!(r#"{{"body":"{alone}"}}"#)),
        r#"{"body":"code=<redacted:oauth-1>"}"#
    );
    for stays in [
        "code=US&state=CA",
        "code=FR",
        "code=E_NOT_FOUND",
        "state=xyz-state",
        "exit_code=Splxl0BeZQ&state=x",
        "error code=a1b2c3d4e5f6a7b8c9d0 of /callback code=Splxl0BeZQ",
        "if(code=Splxl0BeZQ&state=1)",
    ] {
        assert_eq!(redact(&mut plain(), stays), stays);
        let text = format!(r#"{{"text":"{stays}"}}"#);
        assert_eq!(redact(&mut plain(), &text), text);
    }
}

#[test]
fn a_code_in_json_is_told_by_its_look_and_what_stands_beside_it() {
    let code = "SplxlOBeZQQ4bYS6WxSbIA";
    let in_string = |object: &str| format!(r#"{{"text":{}}}"#, serde_json::to_string(object).unwrap());
    let in_prose = |object: &str| in_string(&format!("it said: {object}"));
    for (object, hidden) in [
        (r#"{"code":"<>","state":"open"}"#, r#"{"code":"<1>","state":"open"}"#),
        (r#"{"state":"a1b2c3d4","code" : "<>"}"#, r#"{"state":"<1>","code" : "<2>"}"#),
        (r#"{"code":"<>","client_id":"me"}"#, r#"{"code":"<1>","client_id":"me"}"#),
        (r#"{"code":"<>","redirect_uri":"http://h"}"#, r#"{"code":"<1>","redirect_uri":"http://h"}"#),
        (r#"{"code":"c0de1234","redirectUri":"x"}"#, r#"{"code":"<1>","redirectUri":"x"}"#),
        (r#"{"code":"<>","scope":"read"}"#, r#"{"code":"<1>","scope":"read"}"#),
        (r#"{"code":"c0de1234","session_state":"s"}"#, r#"{"code":"<1>","session_state":"s"}"#),
        (r#"{"iss":"https://h","code":"<>"}"#, r#"{"iss":"https://h","code":"<1>"}"#),
    ] {
        let object = object.replace("<>", code);
        let hidden = hidden.replace("<1>", "<redacted:oauth-1>").replace("<2>", "<redacted:oauth-2>");
        assert_eq!(redact(&mut plain(), &object), hidden);
        assert_eq!(redact(&mut plain(), &in_string(&object)), in_string(&hidden));
        let twice = |object: &str| in_string(&in_string(object));
        assert_eq!(redact(&mut plain(), &twice(&object)), twice(&hidden));
    }
    for stays in [
        r#"{"code": -32603, "message": "no", "state": "a1b2c3d4"}"#,
        r#"{"code":"ENOENT","state":"open"}"#,
        r#"{"code":"FR","state":"open","scope":"all"}"#,
        r#"{"code":"E1234567","state":"a1b2c3d4"}"#,
        r#"{"code":"ERR_TOO_MANY_OF_THEM_2024","scope":"all"}"#,
        r#"{"code":"ORDER-2024-000123-SUMMER","client_id":"me"}"#,
        r#"{"code":"invalid_redirect","redirect_uri":"http://h"}"#,
        r#"{"code":"print(a1b2c3d4e5f6a7b8c9d0)","state":"on"}"#,
        r#"{"code":"SplxlOBeZQQ4bYS6WxSbIA"}"#,
        r#"{"code":"SplxlOBeZQQ4bYS6WxSbIA","inner":{"state":"open"}}"#,
        r#"{"postcode":"SplxlOBeZQQ4bYS6WxSbIA","state":"open"}"#,
        r#"{"inputSchema":{"code":"SplxlOBeZQQ4bYS6WxSbIA","state":"open"}}"#,
        r#"{"code"}"#,
        r#"{"code":"#,
        r#"{"code":"a1"#,
    ] {
        assert_eq!(redact(&mut plain(), stays), stays);
        assert_eq!(redact(&mut plain(), &in_string(stays)), in_string(stays));
        assert_eq!(redact(&mut plain(), &in_prose(stays)), in_prose(stays));
    }
}

#[test]
fn what_the_first_oauth_verifies_is_hidden() {
    session(
        &mut plain(),
        &[
            (
                r#"{"u":"https://h/cb?oauth_token=t1&oauth_verifier=v1","v":"oauth_verifier=v2","w":"http://h/x?oauth_signature=s1"}"#,
                r#"{"u":"https://h/cb?oauth_token=<redacted:token-1>&oauth_verifier=<redacted:oauth-1>","v":"oauth_verifier=<redacted:oauth-2>","w":"http://h/x?oauth_signature=<redacted:signature-1>"}"#,
            ),
            (
                r#"{"oauth_verifier":"v3","oauthVerifier":"v4"}"#,
                r#"{"oauth_verifier":"<redacted:oauth-3>","oauthVerifier":"<redacted:oauth-4>"}"#,
            ),
            (r#"{"verifier":"v5"}"#, r#"{"verifier":"v5"}"#),
        ],
    );
}

#[test]
fn a_state_beside_a_short_code_is_hidden_where_it_is_one() {
    for (address, hidden) in [
        ("/cb?code=ab12&state=s1", "/cb?code=<>-1>&state=<>-2>"),
        ("/oauth/callback?state=CA&code=US", "/oauth/callback?state=<>-1>&code=<>-2>"),
        ("/x?code=ab12&state=Kd93mZq71Lp", "/x?code=<>-1>&state=<>-2>"),
        ("/x?code=ab12&state=s1", "/x?code=ab12&state=s1"),
        ("/cb?code=&state=s1", "/cb?code=&state=s1"),
        ("/cb?code=ab12&state=", "/cb?code=ab12&state="),
        ("/x?code=US&state=CA", "/x?code=US&state=CA"),
    ] {
        let hidden = hidden.replace("<>", "<redacted:oauth");
        assert_eq!(plain().url(address), hidden);
        let text = |address: &str| format!(r#"{{"text":"see https://h.example{address} now"}}"#);
        assert_eq!(redact(&mut plain(), &text(address)), text(&hidden));
    }
    session(
        &mut plain(),
        &[
            (
                r#"{"code":"ab12","state":"Kd93mZq71LpKd93mZq71Lp"}"#,
                r#"{"code":"ab12","state":"<redacted:oauth-1>"}"#,
            ),
            (r#"{"code":"US","state":"CA"}"#, r#"{"code":"US","state":"CA"}"#),
            (
                r#"{"code":"E1","state":"open issue 123456789"}"#,
                r#"{"code":"E1","state":"open issue 123456789"}"#,
            ),
            (
                r#"{"code":404,"state":"Ab93mZq71LpKd93mZq71Lp"}"#,
                r#"{"code":404,"state":"Ab93mZq71LpKd93mZq71Lp"}"#,
            ),
        ],
    );
}

#[test]
fn a_form_made_of_short_codes_costs_no_more_than_its_length() {
    let form = "code=a&state=&".repeat(50_000);
    assert_eq!(plain().url(&format!("/cb?{form}")), format!("/cb?{form}"));
    assert_eq!(redact(&mut plain(), &form), form);
}
