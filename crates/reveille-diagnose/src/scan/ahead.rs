//! Threads that pick the lines of the next blocks while the lines of this one are read.
//!
//! ```text
//!  blocks ─▶ worker 0 ─┐
//!         ─▶ worker 1 ─┼─▶ in the blocks' own order ─▶ read
//!         ─▶ worker 0 ─┘
//! ```
//!
//! Blocks go round the workers and come back in the order in which they went, so that what is read, and in which order, does not
//! depend on how many there are. Reading lines stays where it is, because a table or a time reaches from one block into the
//! next. Each worker has two blocks at most; where no thread can be had, the caller picks by itself.

use std::io::BufRead;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope};

use super::blocks::Blocks;
use super::filter::{LineFilter, Picked};

/// Blocks that one worker has at a time: one that is picked from, one that waits.
const AT_ONCE: usize = 2;

struct Worker {
    blocks: SyncSender<Vec<u8>>,
    picked: Receiver<(Vec<u8>, Picked)>,
}

/// Hands every block with its picked lines over, in order.
pub(super) fn each<R: BufRead>(
    filter: &LineFilter,
    jobs: NonZeroUsize,
    blocks: &mut Blocks<'_, R>,
    mut read: impl FnMut(&[u8], &Picked),
) {
    if jobs == NonZeroUsize::MIN {
        return alone(filter, blocks, read);
    }
    std::thread::scope(|scope| {
        let workers: Vec<Worker> = (0..jobs.get()).map_while(|_| worker(scope, filter)).collect();
        if workers.is_empty() {
            return alone(filter, blocks, read);
        }
        let in_all = workers.len() * AT_ONCE;
        let (mut sent, mut received) = (0, 0);
        let mut spare = Vec::new();
        loop {
            let mut block = std::mem::take(&mut spare);
            let more = sent - received < in_all && blocks.next(&mut block);
            if more && workers[sent % workers.len()].blocks.send(block).is_ok() {
                sent += 1;
                continue;
            }
            if received == sent {
                return;
            }
            // A worker that is gone has panicked, which the scope passes on when it ends.
            let Ok((block, picked)) = workers[received % workers.len()].picked.recv() else { return };
            received += 1;
            read(&block, &picked);
            spare = block;
        }
    });
}

fn alone<R: BufRead>(filter: &LineFilter, blocks: &mut Blocks<'_, R>, mut read: impl FnMut(&[u8], &Picked)) {
    let (mut block, mut picked) = (Vec::new(), Picked::default());
    while blocks.next(&mut block) {
        filter.pick(&block, &mut picked);
        read(&block, &picked);
    }
}

fn worker<'scope, 'e>(scope: &'scope Scope<'scope, 'e>, filter: &'scope LineFilter) -> Option<Worker> {
    let (blocks, given) = sync_channel::<Vec<u8>>(AT_ONCE);
    let (done, picked) = sync_channel(AT_ONCE);
    let work = move || {
        for block in given {
            let mut picked = Picked::default();
            filter.pick(&block, &mut picked);
            if done.send((block, picked)).is_err() {
                return;
            }
        }
    };
    Builder::new().name("pick".to_owned()).spawn_scoped(scope, work).ok()?;
    Some(Worker { blocks, picked })
}
