//! A call as the tools get it: allowed by the operator, and running.

use tiller::domain::approval::By;
use tiller::domain::id::CallId;
use tiller::domain::id::ClientId;
use tiller::domain::time::Timestamp;
use tiller::domain::tool::CallState;
use tiller::domain::tool::EffectClass;
use tiller::domain::tool::ToolCall;

pub fn call(tool: &str, arguments: &serde_json::Value, effect: EffectClass) -> ToolCall {
    ToolCall {
        state: CallState::Running,
        allowed: Some(By::Operator(ClientId("test".to_string()))),
        attempts: 1,
        ..ToolCall::proposed(CallId(1), "", tool, &arguments.to_string(), effect, Timestamp(0))
    }
}
