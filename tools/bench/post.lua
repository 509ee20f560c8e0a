-- One POST request, over and over: BODY, KEY and PATH come from the environment.
wrk.method = "POST"
wrk.path = os.getenv("BENCH_PATH")
wrk.body = os.getenv("BENCH_BODY")
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer " .. (os.getenv("BENCH_KEY") or "none")

-- Milliseconds between two requests, so that a pool is full again; not part of the latency.
local pause = tonumber(os.getenv("BENCH_PAUSE_MS") or "0")
if pause > 0 then
	delay = function() return pause end
end

-- Numbers in microseconds, on a line of their own.
done = function(summary, latency)
	io.write(string.format("BENCH %.1f %d %d %d\n", summary.requests / (summary.duration / 1e6),
		latency:percentile(50), latency:percentile(99),
		summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
