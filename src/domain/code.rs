//! The code that is typed to allow a grave call, or to let a call run outside of its box (docs/SAFETY.md §5).

use crate::domain::id::RunId;
use crate::domain::sandbox::Manner;
use crate::domain::text::sha256_hex;
use crate::domain::tool::Digest;

/// Letters of a code. Left out is what is taken for another letter: i, l, o, q, u, v.
const CODE_LETTERS: [char; 20] =
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'j', 'k', 'm', 'n', 'p', 'r', 's', 't', 'w', 'x', 'y', 'z'];
/// How many letters a code has.
pub const CODE_LENGTH: usize = 4;

impl Digest {
    /// The code that is typed to let this call of a run happen in this manner: four letters, none of which looks like
    /// another. The same call of another run has another one, and so has leaving the box: the code that was read for the
    /// one gives no leave for the other.
    pub fn code(&self, run: &RunId, manner: Manner) -> String {
        let beyond = match manner {
            Manner::Unboxed => "\0outside of the box",
            Manner::Reading | Manner::Ruled | Manner::Usual => "",
        };
        let hash = sha256_hex(format!("tiller-code-v2\0{run}\0{}{beyond}", self.0).as_bytes());
        let mut rest = hash.get(..8).and_then(|head| usize::from_str_radix(head, 16).ok()).unwrap_or_default();
        let letter = |_| {
            let one = CODE_LETTERS.get(rest % CODE_LETTERS.len()).copied().unwrap_or('a');
            rest /= CODE_LETTERS.len();
            one
        };
        (0..CODE_LENGTH).map(letter).collect()
    }

    /// Whether `text` is the code, as a person types it.
    pub fn is_code(&self, run: &RunId, manner: Manner, text: &str) -> bool {
        text.trim().to_ascii_lowercase() == self.code(run, manner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_four_letters_that_differ_from_call_to_call_and_from_run_to_run() {
        let [run, other] = [[7; 12], [8; 12]].map(RunId::from_entropy);
        let usual = Manner::Usual;
        let codes: std::collections::BTreeSet<String> =
            (0..500).map(|one| Digest(format!("{one:08x}")).code(&run, usual)).collect();
        assert!(codes.len() > 490, "{} of 500", codes.len());
        assert!(codes.iter().all(|code| code.len() == 4 && code.chars().all(|one| CODE_LETTERS.contains(&one))));
        let digest = Digest("1a2b3c4d".to_string());
        let code = digest.code(&run, usual);
        assert!(digest.is_code(&run, usual, &format!(" {} ", code.to_uppercase())));
        assert!(!digest.is_code(&other, usual, &code));
        assert!(!digest.is_code(&run, usual, "") && !digest.is_code(&run, usual, &code[..3]));
    }

    #[test]
    fn leaving_the_box_has_a_code_of_its_own() {
        let run = RunId::from_entropy([7; 12]);
        let same = |one: &u32| {
            let digest = Digest(format!("{one:08x}"));
            let [inside, outside] = [Manner::Usual, Manner::Unboxed].map(|manner| digest.code(&run, manner));
            digest.is_code(&run, Manner::Unboxed, &inside) || digest.is_code(&run, Manner::Usual, &outside)
        };
        assert!((0..500).filter(same).count() < 5);
    }
}
