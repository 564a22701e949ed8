"""Every constant of time, in seconds, with its reason."""

# sockets
SCAN_SEARCHING = 0.25  # a dump costs 0.05 ms of CPU: 4 a second is 1 mCPU and halves the wait for a new UI
SCAN_FOUND = 1.0  # the destroy event tells the end; this is the net below it
SCAN_PROC = 5.0  # /proc costs 9 ms a scan (96 ms with 20,000 connections)
SCAN_PROC_SHARE = 0.01  # not a time: of one CPU, at most, for scans of /proc; big tables are read less often

# probe
PROBE_FIRST = 10.0  # Spark's first REST answer takes 1.2-2.3 s on a slow core (Jersey starts)
PROBE_AGAIN_MIN = 0.25  # "starting up" lasts 0.1-0.5 s on a free core
PROBE_AGAIN_MAX = 5.0
PROBE_STARTING = 120.0  # a UI that starts for longer than this, and what is no UI at all, is asked at
PROBE_SLOW = 60.0  # pace: a user's own server deserves no more than that
PROBE_TRIES = 3  # not a time: quick questions to what is silent, filtered or refuses
HOOK_HEAD_START = 3.0  # with the hook's files standing, the bind line comes within ms: no need to ask

# log hook
HOOK_CONNECT = 0.25  # the driver's connect to loopback: at once, unless our backlog is full
HOOK_BOUND = 0.5  # the driver's wait for the answer to a bind line, which needs one scan of the sockets
HOOK_EARLY = 0.1  # "stopping" is answered this much before the driver would give up and call it an error
HOOK_REQUEST = 2.0  # one whole post; the driver writes it in one go
HOOK_PORT_RETRY = 5.0  # the hook's port is held by someone else: look again

# API
CALL = 5.0  # any API call; kubernetes_asyncio has no time-out of its own
CONFLICT_MIN = 0.01  # a writer of 20 patches a second leaves 50 ms; get and patch take 5-10 ms
CONFLICT_MAX = 0.5
CONFLICT_TRIES = 12  # within one pass; the next pass comes after RETRY_MIN
RETRY_MIN = 0.25  # after an outage, growing to
RETRY_MAX = 30.0  # while nothing is at stake, and to
RETRY_MAX_PARKING = 1.0  # while a Service may still route to a closed port
RETRY_REFUSED_PARKING = 5.0  # 401 or 403 while the Service may still lead here
RETRY_REFUSED_MAX = 60.0  # 403, 404, blocked: someone has to act, no log or load meanwhile
SLICE_READS = 10  # not a time: reads of the slices after a park, at most
LATE_LOOKS = 60  # not a time: at a second each; then RETRY_MAX
SLICE_FIRST = 0.005  # the endpoint controller empties a slice in 9 ms (median), 14 at most
SLICE_MAX = 0.2
SLICE_LAG = 0.005  # watchers, kube-proxy among them, hear of a slice some ms after a list shows it
BLIND_GONE = 0.1  # without the right to read slices, "gone" is the write and this much
DRIFT = 300.0  # an unchanged Service is read again, with jitter
DRIFT_JITTER = 0.2  # a share of DRIFT

# ending
END_POLL_MIN = 1.0  # own Pod, once the driver's listeners are gone
END_POLL_MAX = 10.0
END_LOOK = 2.0  # after SIGTERM and parked: kubelet shows the driver's end within about a second
FAREWELL = 1.0  # for the last Event and the answer to a waiting `drain`
DEFECTS = 3  # not a time: lives of the reconciler within one of the agent
PLAIN_POLL = 60.0  # own Pod in plain mode, while other sockets of the driver's uid listen but no UI
BLIND_END = 60.0  # without the right to read Pods: no listener of the driver's for so long is its end
END_POLL_ENDING = 0.2  # after SIGTERM: kubelet reports the driver's end within about a second of it
BLIND_START = 900.0  # as BLIND_END, for a driver never seen: its image may still be pulled
DRAIN_DEFAULT = (
    10.0  # `drain` and SIGTERM together: the endpoints are gone in 50 ms when the API server answers
)
TICK = 1.0  # how often the loop shows that it turns
RESTART = 1.0  # after a defect, twice as long each time: the process stays, and with it the Pod's readiness
RESTART_CALM = 600.0  # a life of so long counts as none of a row of failing ones
RESTARTS = (
    5  # not a time: in a row; then the process ends, since a plain sidecar that lives for ever holds the Pod
)
LIVENESS = 15.0  # the loop ticks each second; a missing tick for so long is a hang

# telling
ENDPOINT = 5.0  # one HTTP request to our endpoints, whole; a kubelet probe gives up after 1 s by default
CONTROL_REQUEST = 2.0  # one line over the Unix socket, from a process on the same node
CONTROL_SPARE = 2.0  # beyond the time that a command itself may take: the agent answers first
DISCOVER = 30.0  # `discover` alone may ask a few possible UIs, one after the other
WAIT_DEFAULT = 300.0  # `wait`: a driver's start with its image pulled takes a minute or two
WAIT_POLL = 0.2  # between two looks of `wait`
EVENT = 5.0  # one Event; nothing waits for it
SETTLED = 5.0  # a restarted agent's Pod is not Ready before the Service is right: 0.3 s, unless the API server is away
SETTLED_POLL = 0.05  # until its socket is there, 0.2 s after its start
INSTALL = 60.0  # `install-hook` may wait or work for so long: the agent's first steps take 9 to 16 s under a limit of 10m
INSTALL_POLL = 0.005  # until the agent beside it has written the files: 0.05 s
