//! Clusters of their own, each with its program, played at the same time and cleared away whatever became of them.

use std::fs;

use anyhow::{Context, Result, anyhow};
use reveille_tests::reveille::Place;

use super::Ground;

/// One cluster, and what happens to it.
pub(super) trait Scene: Send {
    /// Plays it to its end.
    fn played(&mut self) -> Result<()>;
    /// Its cluster's id.
    fn id(&self) -> &str;
    /// Where its program runs.
    fn place(&self) -> &Place;
    /// Its cluster.
    fn ground(self) -> Ground;
}

/// Plays all of them at once; none, where one cannot be laid.
pub(super) fn play<S: Scene>(laid: impl Iterator<Item = (&'static str, Result<S>)>) -> Result<()> {
    let mut scenes = Vec::new();
    let mut ended = Ok(());
    for (id, scene) in laid {
        match scene {
            Ok(scene) => scenes.push(scene),
            Err(why) => ended = ended.and(Err(why.context(format!("{id} cannot be laid")))),
        }
    }
    if ended.is_ok() {
        let told = std::thread::scope(|scope| {
            let playing: Vec<_> = scenes.iter_mut().map(|scene| scope.spawn(|| scene.played())).collect();
            let ended = |one: std::thread::ScopedJoinHandle<'_, Result<()>>| {
                one.join().unwrap_or_else(|_| Err(anyhow!("it panicked")))
            };
            playing.into_iter().map(ended).collect::<Vec<_>>()
        });
        for (scene, told) in scenes.iter().zip(told) {
            let log = fs::read_to_string(&scene.place().log).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(8).collect();
            let about = || format!("{}: its log from the end: {}", scene.id(), tail.join(" | "));
            ended = ended.and(told.with_context(about));
        }
    }
    for scene in scenes {
        scene.ground().clear()?;
    }
    ended
}
