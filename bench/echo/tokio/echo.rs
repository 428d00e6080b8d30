// SPDX-License-Identifier: Apache-2.0
//
// The echo server on tokio's runtime for one thread and tasks that stay on it: a task and a buffer
// for each connection.
use std::cell::Cell;
use std::io::Write;
use std::net::Ipv4Addr;
use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::Notify;

struct Counter {
    requests: Cell<u64>,
    most: u64,
    reached: Notify,
    connection_ended: Notify,
}

impl Counter {
    fn add(&self) {
        self.requests.set(self.requests.get() + 1);
        if self.requests.get() == self.most {
            self.reached.notify_one();
        }
    }
}

async fn serve(mut peer: TcpStream, counter: &Counter) {
    let mut data = [0u8; 1024];
    loop {
        match peer.read(&mut data).await {
            Ok(0) | Err(_) => return,
            Ok(size) => {
                if peer.write_all(&data[..size]).await.is_err() {
                    return;
                }
            }
        }
        counter.add();
    }
}

async fn accept(port: u16, counter: Rc<Counter>) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    let listener = socket.listen(4096)?;
    println!("listening {}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    loop {
        match listener.accept().await {
            Ok((peer, _)) => {
                let _ = peer.set_nodelay(true);
                let counter = counter.clone();
                tokio::task::spawn_local(async move {
                    serve(peer, &counter).await;
                    counter.connection_ended.notify_one();
                });
            }
            // The descriptor table is full: trying again at once would spin.
            Err(_) => counter.connection_ended.notified().await,
        }
    }
}

fn usage() -> ! {
    eprintln!("usage: echo [--port N] [--max-requests N]");
    std::process::exit(2);
}

fn main() -> std::io::Result<()> {
    let mut port = 0;
    let mut most = 0;
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| usage());
        match option.as_str() {
            "--port" => port = value.parse().unwrap_or_else(|_| usage()),
            "--max-requests" => most = value.parse().unwrap_or_else(|_| usage()),
            _ => usage(),
        }
    }

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build_local(Default::default())?;
    let counter = Rc::new(Counter {
        requests: Cell::new(0),
        most,
        reached: Notify::new(),
        connection_ended: Notify::new(),
    });
    let counted = counter.clone();
    runtime.block_on(async move {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        tokio::select! {
            failed = accept(port, counted.clone()) => failed,
            _ = counted.reached.notified() => Ok(()),
            _ = terminated.recv() => Ok(()),
            _ = interrupted.recv() => Ok(()),
        }
    })?;
    println!("{{\"requests\":{}}}", counter.requests.get());
    Ok(())
}
