//! What the operator typed of one start of a call is not for the next one.

use tiller::domain::id::CallId;
use tiller::domain::sandbox::Manner;

use crate::machine::stage::Stage;

#[test]
fn what_ran_outside_of_the_box_is_run_again_in_it() {
    let mut stage = Stage::new("");
    for line in ["own", "reply todos a", "reply shell x", "prepared c2=boxed", "code allow-unboxed c2"] {
        stage.take(line);
    }
    let manner = |stage: &Stage| Manner::of(&stage.run.calls[&CallId(2)]);
    assert_eq!(manner(&stage), Manner::Unboxed);
    for line in ["crash", "resolve c2 again"] {
        stage.take(line);
    }
    assert_eq!((manner(&stage), stage.run.calls[&CallId(2)].attempts), (Manner::Usual, 2));
}
