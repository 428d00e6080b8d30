// SPDX-License-Identifier: Apache-2.0

// Go: goroutines, channels, sync.Mutex and sync.WaitGroup.
//
//	executors --what NAME [--count 1000000] [--threads 2]
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Calls f(n), which does n items: a tenth to warm up, then all. Gives ns an item.
func timeItems(count int, f func(n int)) float64 {
	f(count/10 + 1)
	began := time.Now()
	f(count)
	return float64(time.Since(began).Nanoseconds()) / float64(count)
}

func expect(right bool) {
	if !right {
		fmt.Fprintln(os.Stderr, "executors: what came is not what was to come")
		os.Exit(1)
	}
}

func post(count int) float64 {
	runtime.GOMAXPROCS(1)
	return timeItems(count, func(n int) {
		over := make(chan bool)
		go func() {
			for i := 0; i < n; i++ {
				runtime.Gosched()
			}
			over <- true
		}()
		<-over
	})
}

func produce(count, producers int) float64 {
	return timeItems(count, func(n int) {
		var over sync.WaitGroup
		over.Add(n)
		for p := 0; p < producers; p++ {
			go func(items int) {
				for i := 0; i < items; i++ {
					go over.Done()
				}
			}(n*(p+1)/producers - n*p/producers)
		}
		over.Wait()
	})
}

// Two threads, as the others have two contexts.
func pingPong(count int) float64 {
	there, here := make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread()
		for range there {
			here <- true
		}
	}()
	runtime.LockOSThread()
	return timeItems(count, func(n int) {
		for i := 0; i < n/2; i++ {
			there <- true
			<-here
		}
	})
}

func channel(count int) float64 {
	runtime.GOMAXPROCS(1)
	return timeItems(count, func(n int) {
		values := make(chan uint64, 64)
		over := make(chan int)
		go func() {
			got := 0
			for range values {
				got++
			}
			over <- got
		}()
		for i := 0; i < n; i++ {
			values <- uint64(i)
		}
		close(values)
		expect(<-over == n)
	})
}

func mutex(count int) float64 {
	return timeItems(count, func(n int) {
		var lock sync.Mutex
		var over sync.WaitGroup
		sum := 0
		over.Add(8)
		for i := 0; i < 8; i++ {
			go func() {
				for j := 0; j < n/8; j++ {
					lock.Lock()
					sum++
					lock.Unlock()
				}
				over.Done()
			}()
		}
		over.Wait()
		expect(sum == n/8*8)
	})
}

func spawn(count int) float64 {
	return timeItems(count, func(n int) {
		var over sync.WaitGroup
		var sum uint64
		over.Add(n)
		for i := 0; i < n; i++ {
			go func() {
				atomic.AddUint64(&sum, 1)
				over.Done()
			}()
		}
		over.Wait()
		expect(sum == uint64(n))
	})
}

func fibValue(n int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	return fibValue(n-1) + fibValue(n-2)
}

func fibCalls(n int) int {
	if n < 2 {
		return 1
	}
	return 1 + fibCalls(n-1) + fibCalls(n-2)
}

func fibOf(calls int) int {
	a, b, n := 1, 1, 1
	for 2*b-1 < calls {
		a, b = b, a+b
		n++
	}
	return n
}

func fibTask(n int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	var first uint64
	var over sync.WaitGroup
	over.Add(1)
	go func() {
		first = fibTask(n - 1)
		over.Done()
	}()
	second := fibTask(n - 2)
	over.Wait()
	return first + second
}

func fib(count int) float64 {
	calls := float64(fibCalls(fibOf(count)))
	return float64(count) / calls * timeItems(count, func(k int) {
		n := fibOf(k)
		expect(fibTask(n) == fibValue(n))
	})
}

func skynetTask(to chan uint64, number, size uint64) {
	if size == 1 {
		to <- number
		return
	}
	parts := make(chan uint64, 10)
	for i := uint64(0); i < 10; i++ {
		go skynetTask(parts, number+i*(size/10), size/10)
	}
	sum := uint64(0)
	for i := 0; i < 10; i++ {
		sum += <-parts
	}
	to <- sum
}

func skynet(count int) float64 {
	return timeItems(count, func(n int) {
		size := uint64(1)
		for size*10 <= uint64(n) {
			size *= 10
		}
		to := make(chan uint64, 1)
		go skynetTask(to, 0, size)
		expect(<-to == size*(size-1)/2)
	})
}

func main() {
	what := flag.String("what", "", "")
	count := flag.Int("count", 1000000, "")
	threads := flag.Int("threads", 2, "")
	flag.Parse()
	runtime.GOMAXPROCS(*threads)
	known := map[string]func(int) float64{
		"post":           post,
		"one_producer":   func(n int) float64 { return produce(n, 1) },
		"four_producers": func(n int) float64 { return produce(n, 4) },
		"ping_pong":      pingPong,
		"channel":        channel,
		"mutex":          mutex,
		"spawn":          spawn,
		"fib":            fib,
		"skynet":         skynet,
	}
	run, found := known[*what]
	if !found {
		fmt.Fprintln(os.Stderr, "usage: executors --what NAME [--count N] [--threads N]")
		os.Exit(2)
	}
	fmt.Printf("{\"ns_per_item\": %.2f}\n", run(*count))
}
