# The SQL of schema/ becomes a part of the library.
SCHEMA_SQL := $(wildcard schema/sqlite/*.sql schema/mysql/*.sql)
OBJ += $(OUT)/gen/migrations.o

$(OUT)/gen/migrations.c: tools/embed-sql.sh $(SCHEMA_SQL)
	@mkdir -p $(@D)
	$(Q)tools/embed-sql.sh >$@.tmp && mv $@.tmp $@
$(OUT)/gen/migrations.o: $(OUT)/gen/migrations.c $(OUT)/.flags
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
