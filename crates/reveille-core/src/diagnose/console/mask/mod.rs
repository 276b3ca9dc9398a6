//! Takes secrets out of text before the program keeps or quotes it.
//!
//! ```text
//!  text ─▶ colours out ─┬▶ keys        private keys, whole, cut off or bare ───────────────┐
//!                       ├▶ named       what stands behind a telling name ─┬▶ below, pairs  ├▶ ranges ─▶ blotted out
//!                       │                                                 ├▶ scalars       │
//!                       ├▶ commands    options that take a secret         └▶ prose         │
//!                       ├▶ piped       what an echo feeds to chpasswd, and a file's name ──┤
//!                       ├▶ accounts    user:password lines of chpasswd and cloud-init      │
//!                       ├▶ manifests   Secrets of Kubernetes                               │
//!                       ├▶ files       lines of daemons' files                             │
//!                       ├▶ tables      columns and rows that are printed ─▶ cells          │
//!                       ├▶ xml         attributes and elements ─▶ tags                     │
//!                       ├▶ shapes      tokens by their form, by their prefix, long base64  │
//!                       └▶ urls        what stands before a host ──────────────────────────┘
//!  tables of words: names (what tells), plain and messages (what is none), prefixes, tools; measure: random; places: lines
//! ```
//!
//! A console shows what first boot saw: join tokens, cloud passwords, keys, whole user-data payloads. Text goes through
//! [`mask_secrets`] before it is read any further, so that nothing which is quoted later can hold one. Masking keeps
//! every line break (line numbers stay true) and is idempotent. When in doubt it masks: a lost word costs less than a
//! leaked one. What it must not do is eat the facts of a failure: addresses, paths, ids, digests of certificates and images,
//! reasons, and token *ids* stay. What tells the kind of a token stays with it: `glpat-[masked]`.
//!
//! Each detector marks byte ranges in one pass. The guest alone decides what it prints, so no detector walks text again for
//! each of many matches in it, and none backtracks.
//!
//! Left out on purpose: a random word with no name, no prefix and no tool beside it, because names of pods and ids of
//! containers look alike; and a secret that is encoded twice or cut in the middle by a reader that saw one line of it.

mod accounts;
mod below;
mod cells;
mod colour;
mod columns;
mod commands;
mod files;
mod found;
mod keys;
mod lines;
mod manifests;
mod messages;
mod named;
mod names;
mod pairs;
mod paths;
mod piped;
mod plain;
mod prefixes;
mod prose;
mod random;
mod scalars;
mod shapes;
mod tables;
mod tags;
mod tools;
mod urls;
mod value;
mod xml;

use std::borrow::Cow;

/// What stands in a secret's place.
pub const MASK: &str = "[masked]";

/// The same text with every recognised secret replaced, or the text itself when there is none.
pub fn mask_secrets(text: &str) -> Cow<'_, str> {
    /// One detector may take what another one needed to see where a secret ends (`token: -----END PRIVATE KEY-----x`). Ordinary
    /// text is done after the first round; the second only finds that.
    const ROUNDS_MAX: usize = 5;
    let text = colour::uncoloured(text);
    let mut done = match masked(&text) {
        None => return text,
        Some(masked) => masked,
    };
    for _ in 1..ROUNDS_MAX {
        match masked(&done) {
            Some(again) => done = again,
            None => break,
        }
    }
    Cow::Owned(done)
}

/// The text with what was marked in it blotted out; `None` where that changes nothing.
fn masked(text: &str) -> Option<String> {
    let mut ranges = Vec::new();
    keys::private_keys(text, &mut ranges);
    named::named_values(text, &mut ranges);
    commands::command_secrets(text, &mut ranges);
    piped::piped(text, &mut ranges);
    accounts::account_lines(text, &mut ranges);
    files::file_secrets(text, &mut ranges);
    tables::table_secrets(text, &mut ranges);
    manifests::secret_manifests(text, &mut ranges);
    shapes::shaped_tokens(text, &mut ranges);
    urls::url_secrets(text, &mut ranges);
    xml::xml_secrets(text, &mut ranges);
    if ranges.is_empty() {
        return None;
    }
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut masked = String::with_capacity(text.len());
    let mut done = 0;
    for range in ranges {
        if range.end <= done {
            continue;
        }
        let start = range.start.max(done);
        masked.push_str(&text[done..start]);
        // An overlap continues a stretch that is masked already.
        if range.start >= done && !masked.ends_with(MASK) {
            masked.push_str(MASK);
        }
        masked.extend(text[start..range.end].matches('\n'));
        done = range.end;
    }
    masked.push_str(&text[done..]);
    (masked != text).then_some(masked)
}

#[cfg(test)]
mod tests;
