module kinfolk.example/clients

go 1.24

require (
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
)
