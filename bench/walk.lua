-- Sends the requests of a list one after another, over and over:
--   wrk -s walk.lua <url> -- <file> <how many to leave out at first> [statuses]
-- The file holds whole requests, each ended by a NUL. It is the same work for every server. `statuses` counts answers
-- by status, which makes wrk read every header.

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
  if args[3] == "statuses" then
    response = function(status)
      counts[status] = (counts[status] or 0) + 1
    end
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function done(summary)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  print(string.format("result %d %d %d %d", summary.requests, summary.duration, errors.status, broken))
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get("counts")) do
      print(string.format("status %d %d", status, count))
    end
  end
end
