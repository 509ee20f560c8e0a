# The escape and abuse attempts inside sessions, and what the code behind the lock is made of.
PROBES_SRC := $(wildcard tests/probes/*.c)
$(OUT)/probes: $(PROBES_SRC:%.c=$(OUT)/%.o) $(LIB) | $(OUT)/otari-init
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $(PROBES_SRC:%.c=$(OUT)/%.o) $(LIB) $(LIBS)
$(OUT)/plain/sandbox/init/python.o: sandbox/init/driver.py
$(OUT)/plain/sandbox/init/convert.o: sandbox/init/extract.py
$(OUT)/tests/probes/escape.o: tests/probes/escape.py tests/probes/tricks.py
