// SPDX-License-Identifier: Apache-2.0
//
// tokio: its runtime for one thread for what needs one, the other with as many threads as are asked for.
//
//   executors --what NAME [--count 1000000] [--threads 2]
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

fn one_thread() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn pool(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).build().unwrap()
}

/// Calls `f(n)`, which does n items: a tenth to warm up, then all. Gives ns an item.
fn time_items(count: u64, mut f: impl FnMut(u64)) -> f64 {
    f(count / 10 + 1);
    let began = Instant::now();
    f(count);
    began.elapsed().as_nanos() as f64 / count as f64
}

struct Countdown {
    left: AtomicU64,
    over: Mutex<bool>,
    told: Condvar,
}

impl Countdown {
    fn new(items: u64) -> Arc<Countdown> {
        Arc::new(Countdown {
            left: AtomicU64::new(items),
            over: Mutex::new(false),
            told: Condvar::new(),
        })
    }

    fn end_one(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            *self.over.lock().unwrap() = true;
            self.told.notify_one();
        }
    }

    fn wait(&self) {
        let mut over = self.over.lock().unwrap();
        while !*over {
            over = self.told.wait(over).unwrap();
        }
    }
}

fn post(count: u64) -> f64 {
    let runtime = one_thread();
    time_items(count, |n| {
        runtime.block_on(async move {
            // A task that goes to the end of the queue again and again.
            tokio::spawn(async move {
                for _ in 0..n {
                    tokio::task::yield_now().await;
                }
            })
            .await
            .unwrap();
        })
    })
}

fn produce(count: u64, threads: usize, producers: u64) -> f64 {
    let runtime = pool(threads);
    time_items(count, |n| {
        let over = Countdown::new(n);
        std::thread::scope(|scope| {
            for p in 0..producers {
                let (runtime, over) = (&runtime, &over);
                scope.spawn(move || {
                    for _ in n * p / producers..n * (p + 1) / producers {
                        let over = over.clone();
                        runtime.spawn(async move { over.end_one() });
                    }
                });
            }
        });
        over.wait();
    })
}

fn ping_pong(count: u64) -> f64 {
    let (to_there, mut there) = mpsc::unbounded_channel::<()>();
    let (to_here, mut here) = mpsc::unbounded_channel::<()>();
    let other = std::thread::spawn(move || {
        one_thread().block_on(async move {
            while there.recv().await.is_some() {
                let _ = to_here.send(());
            }
        })
    });
    let runtime = one_thread();
    let ns = time_items(count, |n| {
        runtime.block_on(async {
            for _ in 0..n / 2 {
                to_there.send(()).unwrap();
                here.recv().await.unwrap();
            }
        })
    });
    drop(to_there);
    other.join().unwrap();
    ns
}

fn channel(count: u64) -> f64 {
    let runtime = one_thread();
    time_items(count, |n| {
        runtime.block_on(async move {
            let (sender, mut receiver) = mpsc::channel::<u64>(64);
            let receiving = tokio::spawn(async move {
                let mut got = 0;
                while receiver.recv().await.is_some() {
                    got += 1;
                }
                got
            });
            for i in 0..n {
                sender.send(i).await.unwrap();
            }
            drop(sender);
            assert_eq!(receiving.await.unwrap(), n);
        })
    })
}

fn mutex(count: u64, threads: usize) -> f64 {
    let runtime = pool(threads);
    time_items(count, |n| {
        runtime.block_on(async move {
            let sum = Arc::new(tokio::sync::Mutex::new(0u64));
            let all: Vec<_> = (0..8)
                .map(|_| {
                    let sum = sum.clone();
                    tokio::spawn(async move {
                        for _ in 0..n / 8 {
                            *sum.lock().await += 1;
                        }
                    })
                })
                .collect();
            for each in all {
                each.await.unwrap();
            }
            assert_eq!(*sum.lock().await, n / 8 * 8);
        })
    })
}

fn spawn(count: u64, threads: usize) -> f64 {
    let runtime = pool(threads);
    time_items(count, |n| {
        runtime.block_on(async move {
            // On a thread of the pool, as the tasks are.
            tokio::spawn(async move {
                let sum = Arc::new(AtomicU64::new(0));
                let all: Vec<_> = (0..n)
                    .map(|_| {
                        let sum = sum.clone();
                        tokio::spawn(async move {
                            sum.fetch_add(1, Ordering::Relaxed);
                        })
                    })
                    .collect();
                for each in all {
                    each.await.unwrap();
                }
                assert_eq!(sum.load(Ordering::Relaxed), n);
            })
            .await
            .unwrap();
        })
    })
}

fn fib_value(n: u32) -> u64 {
    if n < 2 { n as u64 } else { fib_value(n - 1) + fib_value(n - 2) }
}

fn fib_calls(n: u32) -> u64 {
    if n < 2 { 1 } else { 1 + fib_calls(n - 1) + fib_calls(n - 2) }
}

fn fib_of(calls: u64) -> u32 {
    let (mut a, mut b, mut n) = (1u64, 1u64, 1);
    while 2 * b - 1 < calls {
        (a, b) = (b, a + b);
        n += 1;
    }
    n
}

fn fib_task(n: u32) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return n as u64;
        }
        let first = tokio::spawn(fib_task(n - 1));
        let second = fib_task(n - 2).await;
        first.await.unwrap() + second
    })
}

fn fib(count: u64, threads: usize) -> f64 {
    let runtime = pool(threads);
    let calls = fib_calls(fib_of(count)) as f64;
    count as f64 / calls
        * time_items(count, |k| {
            let n = fib_of(k);
            runtime.block_on(async move {
                assert_eq!(tokio::spawn(fib_task(n)).await.unwrap(), fib_value(n));
            })
        })
}

fn skynet_task(number: u64, size: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if size == 1 {
            return number;
        }
        let part = size / 10;
        let all: Vec<_> =
            (0..10).map(|i| tokio::spawn(skynet_task(number + i * part, part))).collect();
        let mut sum = 0;
        for each in all {
            sum += each.await.unwrap();
        }
        sum
    })
}

fn skynet(count: u64, threads: usize) -> f64 {
    let runtime = pool(threads);
    time_items(count, |n| {
        let mut size = 1;
        while size * 10 <= n {
            size *= 10;
        }
        runtime.block_on(async move {
            let sum = tokio::spawn(skynet_task(0, size)).await.unwrap();
            assert_eq!(sum, size * (size - 1) / 2);
        })
    })
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)).cloned()
    };
    let number = |name: &str, default: u64| {
        option(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let count = number("--count", 1_000_000);
    let threads = number("--threads", 2) as usize;
    let ns = match option("--what").unwrap_or_default().as_str() {
        "post" => post(count),
        "one_producer" => produce(count, threads, 1),
        "four_producers" => produce(count, threads, 4),
        "ping_pong" => ping_pong(count),
        "channel" => channel(count),
        "mutex" => mutex(count, threads),
        "spawn" => spawn(count, threads),
        "fib" => fib(count, threads),
        "skynet" => skynet(count, threads),
        _ => {
            eprintln!("usage: executors --what NAME [--count N] [--threads N]");
            std::process::exit(2);
        }
    };
    println!("{{\"ns_per_item\": {ns:.2}}}");
}
