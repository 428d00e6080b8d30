module executors

go 1.19
