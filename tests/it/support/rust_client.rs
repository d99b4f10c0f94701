//! The Rust SDK's client, in this process.
//!
//! It does the same steps as the client scripts. Requests are made from JSON, so that one function serves every method.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    ClientConfig, ClientRequest, ClientResult, Implementation, ProtocolVersion, ServerNotification,
    ServerRequest,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, Peer, PeerRequestOptions,
    RequestContext, RequestHandle, RunningService, Service,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ErrorData, RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::client::Run;

/// Runs one job; see the client scripts.
pub(crate) fn run(job: &Value) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (stderr, path) = super::client::stderr_file(folder.path(), "stderr");
    let seconds = job["seconds"].as_u64().expect("a job has a limit");
    let transcript = runtime.block_on(async {
        let script = Script::new(job);
        match tokio::time::timeout(Duration::from_secs(seconds), script.run(stderr)).await {
            Ok(transcript) => transcript,
            Err(_) => json!({"failed": format!("not done after {seconds} s"), "calls": script.seen().calls}),
        }
    });
    let stderr = std::fs::read(path).expect("stderr went to a file");
    Run { transcript, stderr: String::from_utf8_lossy(&stderr).into_owned() }
}

/// What the client has seen so far.
#[derive(Default)]
struct Seen {
    calls: Vec<Value>,
    asked: Vec<Value>,
    notices: Vec<Value>,
    /// Progress by its token; it may be handled after the response it precedes.
    progress: HashMap<String, Vec<Value>>,
    /// Which call has which token.
    tokens: Vec<(usize, String)>,
}

#[derive(Clone)]
struct Script {
    job: Value,
    seen: Arc<Mutex<Seen>>,
    news: Arc<Notify>,
}

type Handle = RequestHandle<RoleClient>;

impl Script {
    fn new(job: &Value) -> Self {
        Self { job: job.clone(), seen: Arc::default(), news: Arc::default() }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("nobody panics holding it")
    }

    async fn run(&self, stderr: std::fs::File) -> Value {
        let client = self.connect(stderr).await;
        let server = client.peer_info().map(|info| serde_json::to_value(&*info).expect("it is JSON"));
        for step in self.job["steps"].as_array().expect("a plan has steps") {
            self.step(client.peer(), server.as_ref(), step).await;
        }
        client.cancel().await.expect("the client ends");
        let mut seen = std::mem::take(&mut *self.seen());
        for (call, token) in seen.tokens {
            seen.calls[call]["progress"] = json!(seen.progress.remove(&token).unwrap_or_default());
        }
        json!({"server": server, "calls": seen.calls, "asked": seen.asked, "notices": seen.notices})
    }

    async fn connect(&self, stderr: std::fs::File) -> RunningService<RoleClient, Self> {
        let lifecycle = match self.job["mode"].as_str() {
            Some("auto") => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: None,
            },
            _ => ClientLifecycleMode::Initialize,
        };
        let client = self.clone();
        let connected = if let Some(url) = self.job["url"].as_str() {
            let transport = StreamableHttpClientTransport::from_uri(url);
            client.serve_with_lifecycle(transport, lifecycle).await
        } else {
            let transport = self.start(stderr);
            client.serve_with_lifecycle(transport, lifecycle).await
        };
        connected.expect("the client connects")
    }

    /// Starts the server.
    fn start(&self, stderr: std::fs::File) -> TokioChildProcess {
        let command: Vec<&str> =
            self.job["command"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let mut process = tokio::process::Command::new(command[0]);
        process.args(&command[1..]);
        let started = TokioChildProcess::builder(process).stderr(stderr).spawn();
        started.expect("the server can be started").0
    }

    async fn step(&self, peer: &Peer<RoleClient>, server: Option<&Value>, step: &Value) {
        let modern = server.is_some_and(|server| server["protocolVersion"].as_str() >= Some("2026-07-28"));
        match step["do"].as_str().expect("a step says what to do") {
            "lists" => {
                let offers =
                    |what: &str| server.is_none_or(|server| server["capabilities"].get(what).is_some());
                for (what, method) in [
                    ("tools", "tools/list"),
                    ("resources", "resources/list"),
                    ("resources", "resources/templates/list"),
                    ("prompts", "prompts/list"),
                ] {
                    if offers(what) {
                        self.call(peer, method, method, None).await;
                    }
                }
            }
            "level" if modern => {}
            "level" => {
                self.call(
                    peer,
                    "logging/setLevel",
                    "logging/setLevel",
                    Some(json!({"level": step["level"]})),
                )
                .await;
            }
            "call" => self.tool(peer, step).await,
            "together" => self.together(peer, step).await,
            "read" => {
                let name = format!("resources/read {}", step["uri"].as_str().expect("a uri"));
                self.call(peer, &name, "resources/read", Some(json!({"uri": step["uri"]}))).await;
            }
            "get" => {
                let name = format!("prompts/get {}", step["prompt"].as_str().expect("a prompt"));
                let params =
                    json!({"name": step["prompt"], "arguments": step.get("arguments").unwrap_or(&json!({}))});
                self.call(peer, &name, "prompts/get", Some(params)).await;
            }
            "complete" => {
                let reference = match step.get("template") {
                    Some(template) => json!({"type": "ref/resource", "uri": template}),
                    None => json!({"type": "ref/prompt", "name": step["prompt"]}),
                };
                let params = json!({"ref": reference, "argument": step["argument"]});
                self.call(peer, "completion/complete", "completion/complete", Some(params)).await;
            }
            "cancel" => self.cancel(peer, step).await,
            // What listens in the modern era has its own test; the client's is one of several ways to do it.
            "watch" if modern => self.tool(peer, step).await,
            "watch" => self.watch(peer, step).await,
            other => panic!("a plan has the unknown step {other:?}"),
        }
    }

    async fn tool(&self, peer: &Peer<RoleClient>, step: &Value) {
        let (name, params) = tool(step);
        self.call(peer, &name, "tools/call", Some(params)).await;
    }

    /// Sends every call before any answer is awaited.
    async fn together(&self, peer: &Peer<RoleClient>, step: &Value) {
        let mut sent = Vec::new();
        for each in step["calls"].as_array().expect("calls") {
            let (name, params) = tool(each);
            sent.push(self.send(peer, &name, "tools/call", Some(params)).await);
        }
        for (call, handle) in sent {
            self.answered(call, handle.await_response().await);
        }
    }

    /// Cancels a call at its first progress.
    async fn cancel(&self, peer: &Peer<RoleClient>, step: &Value) {
        let (name, params) = tool(step);
        let (call, handle) = self.send(peer, &name, "tools/call", Some(params)).await;
        let token = json!(handle.progress_token).to_string();
        self.wait(|seen| seen.progress.contains_key(&token)).await;
        handle.cancel(Some("enough".to_owned())).await.expect("a call can be cancelled");
        let mut seen = self.seen();
        seen.calls[call] = json!({"call": name, "cancelled": true});
        seen.tokens.pop();
    }

    /// Watches a resource while a tool changes it.
    async fn watch(&self, peer: &Peer<RoleClient>, step: &Value) {
        let params = json!({"uri": step["uri"]});
        let call = self.call(peer, "resources/subscribe", "resources/subscribe", Some(params.clone())).await;
        if self.seen().calls[call].get("error").is_some() {
            return;
        }
        self.tool(peer, step).await;
        let updated = |notice: &Value| notice["method"] == "notifications/resources/updated";
        self.wait(|seen| seen.notices.iter().any(updated)).await;
        self.call(peer, "resources/unsubscribe", "resources/unsubscribe", Some(params)).await;
    }

    async fn wait(&self, condition: impl Fn(&Seen) -> bool) {
        loop {
            let news = self.news.notified();
            if condition(&self.seen()) {
                return;
            }
            news.await;
        }
    }

    async fn call(&self, peer: &Peer<RoleClient>, name: &str, method: &str, params: Option<Value>) -> usize {
        let (call, handle) = self.send(peer, name, method, params.clone()).await;
        self.answered(call, handle.await_response().await);
        let asks = |result: &&Value| result["resultType"] == "input_required";
        let asked = self.seen().calls[call].get("result").filter(asks).cloned();
        match asked {
            // Each round is a call of its own in the transcript, with what the server asked.
            Some(asked) => Box::pin(self.call(peer, name, method, Some(self.again(params, &asked)))).await,
            None => call,
        }
    }

    /// The parameters of the next round of a call that asked for input.
    fn again(&self, params: Option<Value>, asked: &Value) -> Value {
        let mut params = params.unwrap_or_else(|| json!({}));
        let requests = asked["inputRequests"].as_object().cloned().unwrap_or_default();
        let answer = |request: &Value| self.answer(request).expect("a server asks what clients can answer");
        params["inputResponses"] =
            requests.iter().map(|(key, request)| (key.clone(), answer(request))).collect();
        if let Some(state) = asked.get("requestState") {
            params["requestState"] = state.clone();
        }
        // It is new each time.
        let mut seen = self.seen();
        let round = seen.calls.last_mut().expect("a call was made");
        round["result"]["requestState"] = "(a state)".into();
        params
    }

    /// The answer to what a server asks.
    fn answer(&self, request: &Value) -> Option<Value> {
        match request["method"].as_str()? {
            "sampling/createMessage" => Some(json!({
                "role": "assistant",
                "content": {"type": "text", "text": "sampled: élan"},
                "model": "peer",
                "stopReason": "endTurn",
            })),
            "elicitation/create" => Some(json!({"action": "accept", "content": self.job["elicit"]})),
            "roots/list" => {
                let roots = self.job["roots"].as_array()?;
                let roots: Vec<Value> = roots.iter().map(|uri| json!({"uri": uri, "name": "root"})).collect();
                Some(json!({"roots": roots}))
            }
            _ => None,
        }
    }

    async fn send(
        &self,
        peer: &Peer<RoleClient>,
        name: &str,
        method: &str,
        params: Option<Value>,
    ) -> (usize, Handle) {
        let mut request = json!({"method": method});
        if let Some(params) = params {
            request["params"] = params;
        }
        let request: ClientRequest = serde_json::from_value(request).expect("a request of the protocol");
        let handle = peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .expect("it can be sent");
        let mut seen = self.seen();
        let call = seen.calls.len();
        seen.calls.push(json!({"call": name}));
        seen.tokens.push((call, json!(handle.progress_token).to_string()));
        (call, handle)
    }

    fn answered(&self, call: usize, answer: Result<rmcp::model::ServerResult, ServiceError>) {
        let mut seen = self.seen();
        match answer {
            Ok(result) => seen.calls[call]["result"] = json!(result),
            Err(ServiceError::McpError(error)) => seen.calls[call]["error"] = json!(error),
            Err(error) => seen.calls[call]["error"] = json!(error.to_string()),
        }
    }
}

fn tool(step: &Value) -> (String, Value) {
    let arguments = step.get("arguments").cloned().unwrap_or_else(|| json!({}));
    let name = format!("tools/call {}", step["tool"].as_str().expect("a tool"));
    (name, json!({"name": step["tool"], "arguments": arguments}))
}

impl Service<RoleClient> for Script {
    async fn handle_request(
        &self,
        request: ServerRequest,
        _context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let mut request = json!(request);
        if request["method"] == "ping" {
            return Ok(ClientResult::empty(()));
        }
        let answer = self
            .answer(&request)
            .ok_or_else(|| ErrorData::invalid_request("not a request of the plan", None))?;
        if let Some(params) = request["params"].as_object_mut() {
            params.remove("_meta");
        }
        self.seen().asked.push(request);
        Ok(serde_json::from_value(answer).expect("an answer of the protocol"))
    }

    async fn handle_notification(
        &self,
        notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        let mut notification = json!(notification);
        if notification["method"] == "notifications/progress" {
            let params = notification["params"].as_object_mut().expect("progress has parameters");
            let token = params.remove("progressToken").expect("progress has a token").to_string();
            let progress = Value::Object(params.clone());
            self.seen().progress.entry(token).or_default().push(progress);
        } else {
            self.seen().notices.push(notification);
        }
        self.news.notify_waiters();
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let all = json!({"roots": {"listChanged": true}, "sampling": {}, "elicitation": {}});
        let capabilities = self.job.get("capabilities").cloned().unwrap_or(all);
        let capabilities = serde_json::from_value(capabilities).expect("capabilities of the protocol");
        ClientConfig::new(capabilities, Implementation::new("rust-script", "1.0.0"))
    }
}
