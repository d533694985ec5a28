//! The control tools: handled by the engine itself, never gated, without effect outside the run.

use std::sync::LazyLock;

use serde_json::json;

use crate::domain::limits;
use crate::domain::plan::TodoId;
use crate::domain::plan::TodoStatus;
use crate::domain::tool::EffectClass;
use crate::domain::tool::Noise;
use crate::domain::tool::ToolSpec;

/// Replaces or patches the plan.
pub const UPDATE_PLAN: &str = "update_plan";
/// Claims that the goal is reached.
pub const FINISH: &str = "finish";
/// Asks the operator.
pub const ASK_OPERATOR: &str = "ask_operator";
/// Keeps a note in the conversation.
pub const NOTE: &str = "note";

/// Gives back what was left out of the conversation.
pub const READ_REF: &str = "read_ref";

/// Whether a control tool has this name.
pub fn is_control(name: &str) -> bool {
    [UPDATE_PLAN, FINISH, ASK_OPERATOR, NOTE, READ_REF].contains(&name)
}

/// What the model is told of the control tools (docs/ENGINE.md §6.1, §7.6).
pub fn specs() -> &'static [ToolSpec] {
    static SPECS: LazyLock<Vec<ToolSpec>> = LazyLock::new(written);
    &SPECS
}

fn written() -> Vec<ToolSpec> {
    let todo = json!({
        "type": "object", "additionalProperties": false, "required": ["title", "status"],
        "properties": {
            "id": {"type": "string", "pattern": TodoId::FORM},
            "title": {"type": "string", "minLength": 1, "maxLength": limits::TODO_TITLE_MAX_CHARS},
            "status": {"enum": TodoStatus::ALL.map(TodoStatus::word)},
            "acceptance": {"type": "string", "maxLength": limits::TODO_ACCEPTANCE_MAX_CHARS},
            "note": {"type": "string", "maxLength": limits::TODO_NOTE_MAX_CHARS},
            "parent": {"type": "string"},
            "depends_on": {"type": "array", "maxItems": limits::TODO_DEPENDENCIES_MAX, "items": {"type": "string"}}
        }
    });
    let plan = json!({
        "type": "object", "additionalProperties": false, "required": ["todos"],
        "properties": {
            "mode": {"enum": ["replace", "patch"], "default": "replace"},
            "explanation": {"type": "string", "maxLength": 500},
            "todos": {"type": "array", "maxItems": limits::TODOS_MAX, "items": todo}
        }
    });
    let finish = json!({
        "type": "object", "additionalProperties": false, "required": ["summary"],
        "properties": {
            "summary": {"type": "string", "minLength": 1, "maxLength": 4000},
            "evidence": {"type": "array", "maxItems": 20, "items": {"type": "string", "maxLength": 500}},
            "not_needed": {"type": "array", "maxItems": limits::TODOS_MAX, "items": {
                "type": "object", "additionalProperties": false, "required": ["id", "reason"],
                "properties": {"id": {"type": "string"}, "reason": {"type": "string", "minLength": 1, "maxLength": 300}}
            }}
        }
    });
    let question = json!({
        "type": "object", "additionalProperties": false, "required": ["question"],
        "properties": {"question": {"type": "string", "minLength": 1, "maxLength": 4000}}
    });
    let note = json!({
        "type": "object", "additionalProperties": false, "required": ["text"],
        "properties": {"text": {"type": "string", "minLength": 1, "maxLength": 4000}}
    });
    let reference = json!({
        "type": "object", "additionalProperties": false, "required": ["ref"],
        "properties": {
            "ref": {"type": "string", "minLength": 1, "maxLength": 64},
            "page": {"type": "integer", "minimum": 1, "default": 1}
        }
    });
    let of = |name: &str, description: &str, schema| ToolSpec {
        name: name.to_string(),
        description: description.to_string(),
        schema,
        effect: EffectClass::Control,
        noise: Noise::default(),
    };
    vec![
        of(
            UPDATE_PLAN,
            "Set the plan: the whole list of todos in order (mode replace), or changes to some of them by id (mode patch). \
             At most one todo is in_progress. A dropped, blocked or reopened todo needs a note that says why.",
            plan,
        ),
        of(
            FINISH,
            "Claim that the goal is reached. The claim is checked: every todo must be done or dropped, or listed in \
             not_needed with a reason, and the checks of the run must pass. A failed claim comes back with what is missing.",
            finish,
        ),
        of(
            ASK_OPERATOR,
            "Ask the person in charge a question that only they can answer. The run waits for the answer, so ask only when \
             you can't go on without it.",
            question,
        ),
        of(NOTE, "Keep a finding or a decision in the conversation, for yourself and for the operator.", note),
        of(
            READ_REF,
            "Read again what was left out of the conversation and stands there with a ref: an old result, long arguments, \
             something that the operator said. A long text comes in pages.",
            reference,
        ),
    ]
}
