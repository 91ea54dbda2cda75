-- Sends the requests of a list one after another in a loop:
--   wrk -s walk.lua <url> -- <file> <number to skip at first> <pause> [statuses]
-- The file contains complete requests, each ended by a NUL, so that the work is the same for every server. `statuses`
-- counts responses by status, which makes wrk read every header. Up to twice `pause` milliseconds pass between a
-- response and the next request.

local requests, at = {}, 0
local threads = {}
counts = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init(args)
  local file = assert(io.open(args[1], "rb"))
  for request in file:read("*a"):gmatch("%Z+") do
    requests[#requests + 1] = request
  end
  file:close()
  at = tonumber(args[2])
  pause = tonumber(args[3])
  if pause > 0 then
    delay = function()
      return math.random(0, 2 * pause)
    end
  end
  if args[4] == "statuses" then
    response = function(status)
      counts[status] = (counts[status] or 0) + 1
    end
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary, latency)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  local p50, p95, p99 = latency:percentile(50), latency:percentile(95), latency:percentile(99)
  local results = { summary.requests, summary.duration, errors.status, broken, p50, p95, p99 }
  print("result " .. string.format(("%d "):rep(6) .. "%d", unpack(results)))
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get("counts")) do
      print(string.format("status %d %d", status, count))
    end
  end
end
