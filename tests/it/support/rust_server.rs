//! A Streamable HTTP server on the Rust SDK, in this process. Nothing in it depends on time.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

/// A server that listens; it ends with this.
pub(crate) struct RustServer {
    pub(crate) port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RustServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        listener.set_nonblocking(true).expect("a socket");
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                tokio::select! {
                    () = serve(listener) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { port, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for RustServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()) || std::thread::panicking(), "the server panicked");
    }
}

async fn serve(listener: TcpListener) {
    let gate = Arc::new(Notify::new());
    let make = move || Ok(Handler { gate: Arc::clone(&gate) });
    let mut config = StreamableHttpServerConfig::default();
    config.sse_keep_alive = None;
    let service = StreamableHttpService::new(make, Arc::new(LocalSessionManager::default()), config);
    let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, std::convert::Infallible>(service.handle(request).await) }
            });
            // How a client leaves is its own matter.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

struct Handler {
    /// Opened by `release`.
    gate: Arc<Notify>,
}

impl Handler {
    async fn call(&self, name: &str, arguments: &Value, context: &RequestContext<RoleServer>) -> Value {
        let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
        match name {
            "count" => {
                let to = arguments["to"].as_u64().unwrap_or_default();
                for number in 1..=to {
                    progress(context, number, Some(to)).await;
                }
                let mut result = text(format!("counted to {to}"));
                result["structuredContent"] = json!({"to": to});
                result
            }
            "change" => {
                context.peer.notify_tool_list_changed().await.expect("the client is there");
                text("changed".to_owned())
            }
            "wait_for_release" => {
                progress(context, 1, None).await;
                self.gate.notified().await;
                text("released".to_owned())
            }
            "release" => {
                self.gate.notify_one();
                text("done".to_owned())
            }
            "hang" => {
                progress(context, 1, None).await;
                std::future::pending().await
            }
            "fail" => json!({"content": [{"type": "text", "text": "it fails:\nalways"}], "isError": true}),
            name => {
                json!({"content": [{"type": "text", "text": format!("no tool {name}")}], "isError": true})
            }
        }
    }
}

async fn progress(context: &RequestContext<RoleServer>, done: u64, total: Option<u64>) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let mut params = ProgressNotificationParam::new(token, done as f64);
    params.total = total.map(|total| total as f64);
    context.peer.notify_progress(params).await.expect("the client is there");
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        read(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": true}, "resources": {}},
            "serverInfo": {"name": "rust", "version": "7.8.9"},
            "instructions": "A Rust server for tests.",
        }))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &str, properties: Value| json!({"name": name, "description": format!("The tool {name}."), "inputSchema": {"type": "object", "properties": properties}});
        let mut tools = vec![tool("count", json!({"to": {"type": "integer"}}))];
        tools.extend(
            ["change", "wait_for_release", "release", "hang", "fail"].map(|name| tool(name, json!({}))),
        );
        Ok(read(json!({"tools": tools})))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = json!(request.arguments);
        let result = tokio::select! {
            result = self.call(&request.name, &arguments, &context) => result,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
        };
        Ok(read::<CallToolResult>(result).into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(read(json!({"resources": [{"uri": "note://today", "name": "today"}]})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if request.uri != "note://today" {
            return Err(ErrorData::resource_not_found(format!("no {}", request.uri), None));
        }
        let contents = json!([{"uri": request.uri, "mimeType": "text/plain", "text": "a note — é\n"}]);
        Ok(read::<ReadResourceResult>(json!({"contents": contents})).into())
    }
}

/// What stands in `value`, as a result of any revision.
fn read<T: DeserializeOwned>(mut value: Value) -> T {
    value["resultType"] = "complete".into();
    serde_json::from_value(value).expect("it has the form")
}
