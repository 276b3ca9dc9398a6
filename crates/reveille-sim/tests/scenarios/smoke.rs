use crate::field::*;
use reveille_sim::chaos::{Course, Rate};
use std::collections::BTreeMap;

#[test]
fn triage() {
    let n: u64 = std::env::var("N").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut kinds: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for seed in 0..n {
        let course = Course::random(seed, Rate::default());
        let mut drive = course.stage();
        drive.run_for(course.length + min(20));
        if let Some(v) = drive.violations().first() {
            let key: String = v.to_string().chars().filter(|c| !c.is_ascii_digit()).collect();
            kinds
                .entry(
                    key.split(":").take(2).collect::<Vec<_>>().join(":").chars().take(60).collect::<String>()
                        + "..."
                        + &key.chars().rev().take(40).collect::<String>().chars().rev().collect::<String>(),
                )
                .or_default()
                .push(seed);
        }
        if let Some(h) = drive.world.harms().first() {
            let key: String = h.what.chars().rev().take(30).collect::<String>().chars().rev().collect();
            kinds.entry(format!("HARM {key}")).or_default().push(seed);
        }
        let before = crate::soak::left_lying(&drive);
        if !before.is_empty() {
            let mut later = drive.clone();
            later.run_for(min(4));
            for l in crate::soak::left_lying(&later).into_iter().filter(|l| before.contains(l)) {
                let key = format!(
                    "LYING {} {}",
                    l.split(' ').next().unwrap(),
                    l.rsplit(": ").next().unwrap().split(' ').take(3).collect::<Vec<_>>().join(" ")
                );
                kinds.entry(key).or_default().push(seed);
            }
        }
    }
    for (k, v) in kinds {
        println!("{:4} {k}   {:?}", v.len(), &v[..v.len().min(8)]);
    }
}

#[test]
fn show() {
    let Some(seed) = std::env::var("SEED").ok().and_then(|n| n.parse().ok()) else { return };
    let course = Course::random(seed, Rate::default());
    let mut drive = course.stage();
    drive.run_for(course.length + min(24));
    println!("{}", drive.log().tail(100_000));
    println!("{:#?}", crate::soak::left_lying(&drive));
}
