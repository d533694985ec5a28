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
        id: CallId(1),
        wire_id: String::new(),
        tool: tool.to_string(),
        arguments: arguments.to_string(),
        effect,
        state: CallState::Running,
        facts: None,
        allowed: Some(By::Operator(ClientId("test".to_string()))),
        edited: None,
        is_unboxed: false,
        error: None,
        attempts: 1,
        since: Timestamp(0),
    }
}
