-- Requests of the kinds that BODIES lists (a Messages body a line), drawn by chance.
local bodies = {}
for line in io.lines(os.getenv("SOAK_BODIES")) do bodies[#bodies + 1] = line end
local headers = {
	["Content-Type"] = "application/json",
	["Authorization"] = "Bearer " .. os.getenv("BENCH_KEY"),
}
math.randomseed(tonumber(os.getenv("SOAK_SEED") or "1"))
request = function() return wrk.format("POST", "/v1/messages", headers, bodies[math.random(#bodies)]) end
done = function(summary, latency)
	io.write(string.format("SOAK %d %d %d\n", summary.requests, summary.duration,
		summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
