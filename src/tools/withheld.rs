//! A call that can't be run, where the reason tells of what lies at a place outside the workspace or with a sensitive
//! name: whether a text is in it, how large it is, what it is. Such a sentence is an answer that needs a question, as
//! reading it does (docs/SAFETY.md §5). It decides what waits; it finds nothing out.

use crate::domain::tool::ErrorClass;
use crate::domain::tool::Facts;
use crate::domain::tool::Problem;
use crate::domain::tool::ProblemKind;
use crate::tools::Executed;
use crate::tools::FileWork;
use crate::tools::OnCancel;
use crate::tools::Prepared;
use crate::tools::place::Place;

/// The call, where it can be run or its problem may be said at once; else a call that does nothing but say the problem,
/// once it was allowed. At once is said what is wrong with the arguments, what is refused to everybody, and that nothing
/// is there.
pub(crate) fn until_allowed(place: &Place, prepared: Result<Prepared, Problem>) -> Result<Prepared, Problem> {
    let tells = |problem: &Problem| {
        problem.kind == ProblemKind::Impossible && problem.class != Some(ErrorClass::NotFound) && !place.inside()
    };
    match prepared {
        Err(problem) if tells(&problem) => Ok(to_say(place, problem)),
        other => other,
    }
}

fn to_say(place: &Place, problem: Problem) -> Prepared {
    let facts = Facts {
        title: format!("{} (can't be done)", place.shown),
        reach: place.reach("says why it can't be done, from what is"),
        inside: false,
        grave: place.grave(),
        preview: format!(
            "file {}\nit can't be done, and the reason tells of what is there; allowed, the model is told it\n",
            place.text()
        ),
        binding: vec![place.binding()],
        ..Facts::default()
    };
    let work = move |_: &_| Executed::failed(problem.text, problem.class);
    Prepared { facts, action: FileWork::action(OnCancel::Leave, work) }
}
