# The escape and abuse attempts inside sessions, and what the code behind the lock is made of.
PROBES_SRC := $(wildcard tests/probes/*.c)
$(OUT)/probes: $(PROBES_SRC:%.c=$(OUT)/%.o) $(LIB) | $(OUT)/otari-init
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(PROBES_SRC:%.c=$(OUT)/%.o) $(LIB) $(LIBS)
$(OUT)/plain/sandbox/init/python.o: sandbox/init/driver.py
$(OUT)/plain/sandbox/init/convert.o: sandbox/init/extract.py
$(OUT)/tests/probes/escape.o: tests/probes/escape.py tests/probes/tricks.py tests/probes/inside.py

# The sandbox's figures: the probes' way to a spawner, and times.
BENCH_SANDBOX_OBJ := $(OUT)/tools/bench/sandbox.o \
	$(patsubst %.c,$(OUT)/%.o,$(filter-out tests/probes/main.c,$(PROBES_SRC)))
$(OUT)/bench-sandbox: $(BENCH_SANDBOX_OBJ) $(LIB) | $(OUT)/otari-init
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(BENCH_SANDBOX_OBJ) $(LIB) $(LIBS)

# What a round of code costs, seen from both sides of the gateway.
BENCH_ROUND_OBJ := $(OUT)/tools/bench/round.o $(OUT)/tools/bench/peer.o
$(OUT)/bench-round: $(BENCH_ROUND_OBJ) $(LIB)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(BENCH_ROUND_OBJ) $(LIB) $(LIBS)
