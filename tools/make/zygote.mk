# The zygote's library: plain in every flavour, like otari-init, and carried inside the program.
ZYGOTE_SO := $(OUT)/otari-zygote.so
ZYGOTE_OBJ := $(patsubst %.c,$(OUT)/pic/%.o,$(wildcard sandbox/zygote/*.c))
$(OUT)/pic/%.o: %.c $(OUT)/.flags
	@mkdir -p $(@D)
	$(Q)gcc -I. -D_GNU_SOURCE $(PLAIN_CFLAGS) -fPIC -MMD -MP -c -o $@ $<
$(ZYGOTE_SO): $(ZYGOTE_OBJ)
	$(Q)gcc -shared -Wl,-z,now,-z,relro,-z,noexecstack,-z,defs -o $@ $^
$(OUT)/sandbox/spawner/zygote_image.o: CPPFLAGS += -DOTARI_ZYGOTE_SO='"$(ZYGOTE_SO)"'
$(OUT)/sandbox/spawner/zygote_image.o: $(ZYGOTE_SO) sandbox/zygote/zygote.py sandbox/init/driver.py
