# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Builds the fuzz targets, for run.sh: they need clang, whatever the provider is built
# with, and coverage in each object. GNU make, in the folder where the objects are to be:
#
#   make -f ROOT/test/fuzz/build.mk root=ROOT TARGET...

CXX = clang++-14
fuzz := $(root)/test/fuzz

OPTIMIZE = -O2
FLAGS = -std=c++20 -g1 $(OPTIMIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all -MMD -MP \
	-Wall -Wextra -Wconversion -Wshadow -Wmissing-field-initializers -Werror \
	-I. -I$(root)/prov/dat -I$(root)/include -I$(root)/prov
COVERED = -fsanitize=fuzzer-no-link,address,undefined

# Paths from the root, of what targets share.
files = $(sort $(patsubst $(root)/%,%,$(wildcard $(addprefix $(root)/,$(1)))))
codecs := $(addprefix prov/dat/links/iwarp/,crc32c.cpp ddp.cpp mpa.cpp rdmap.cpp terminate.cpp)
rdm := $(call files,prov/dat/rdm/*.cpp)
offer := $(call files,prov/dat/ofi/*.cpp)
engine := $(call files,prov/dat/base/*.cpp prov/dat/core/*.cpp prov/dat/engine/*.cpp \
	prov/dat/net/*.cpp prov/dat/links/iwarp/*.cpp prov/dat/links/shm/*.cpp)
# Without devices; libfabric's functions are those that the uDAPL libraries bring along.
ofi := $(engine) $(rdm) $(offer) prov/dat/plugin.cpp prov/dat/links/verbs/absent.cpp \
	prov/dat/links/verbs/trailer.cpp
shim := $(ofi) $(call files,prov/dat-shim/*.cpp)
entries := $(call files,prov/dat-shim/udat/*.cpp)

sources_mpa := $(codecs)
sources_codec := $(codecs)
sources_trailer := prov/dat/links/verbs/trailer.cpp
sources_conf := prov/dat-shim/conf.cpp
sources_handshake := $(engine)
sources_receive := $(engine) test/fuzz/hostile_peer.cpp test/fuzz/plain.cpp
sources_local_listener := $(engine) test/fuzz/plain.cpp
sources_peering := $(engine)
sources_rings := $(engine) test/fuzz/plain.cpp
sources_rdm := $(engine) $(rdm) test/fuzz/plain.cpp test/fuzz/rdm_remote.cpp
sources_hints := $(ofi) prov/dat-shim/libfabric.cpp prov/dat-shim/log.cpp
sources_handles12 := $(shim)
sources_handles20 := $(shim)
entries_handles12 := $(entries) $(call files,prov/dat-shim/udat12/*.cpp) test/fuzz/fuzz_handles.cpp
entries_handles20 := $(entries) $(call files,prov/dat-shim/udat20/*.cpp) test/fuzz/fuzz_handles.cpp

# A folder with the uDAPL libraries of a build with the same sanitizers: taken as they are, in
# place of being built with coverage.
libraries =
ifneq ($(libraries),)
sources_handles12 :=
sources_handles20 :=
entries_handles12 := test/fuzz/fuzz_handles.cpp
entries_handles20 := test/fuzz/fuzz_handles.cpp
handles12: LDLIBS = $(libraries)/libdat.so -Wl,-rpath,$(libraries)
handles20: LDLIBS = $(libraries)/libdat2.so -Wl,-rpath,$(libraries)
endif

targets := mpa codec trailer conf handshake receive rings rdm local_listener peering hints handles12 handles20
.PHONY: all
all: $(targets)

# It keeps mappings.
rings: LDLIBS = -Wl,--wrap=mmap,--wrap=munmap

# Inputs of these are scripts, which make right frames by themselves: what is compared takes a
# sixth of their time, and leads nowhere.
scripted := $(filter-out $(codecs:.cpp=.o),$(engine:.cpp=.o)) \
	$(rdm:.cpp=.o) \
	$(addprefix test/fuzz/fuzz_,handshake.o receive.o rings.o rdm.o local_listener.o peering.o) test/fuzz/rdm_remote.o
$(scripted) 12/% 20/%: COVERED += -fno-sanitize-coverage=trace-cmp
# What libFuzzer is to find its way through carries coverage; what it is attacked with not.
test/fuzz/hostile_peer.o: COVERED =
# Loops as they stand: what is in the C library would be looked at by a sanitizer.
test/fuzz/plain.o: COVERED = -O2 -fno-builtin
# As in the libraries: a program may pass any value for a flag.
# Of absent.cpp's classes there is no more than their names.
prov/dat/ofi/%.o prov/dat-shim/%.o 12/% 20/%: COVERED += -fno-sanitize=vptr
12/% 20/%: COVERED += -fno-sanitize=enum

define compile
	@mkdir -p $(@D)
	$(CXX) $(FLAGS) $(COVERED) $(1) -c $< -o $@
endef
# What configure would write, as far as it matters here.
config.h:
	@sed -nE 's/^m4_define\(\[dat_version_(major|minor)\], \[([0-9]+)\]\)$$/#define DAT_VERSION_\U\1\E \2/p' \
		$(root)/configure.ac >$@
	@echo '#define PACKAGE_VERSION "0"' >>$@
# Which sources are in the same targets, with the same flags: for ../batched.sh, where it is the compiler.
Makefile:
	@{ echo 'abs_srcdir = $(root)'; \
		echo 'am_codecs_OBJECTS = $(codecs:.cpp=.o)'; \
		echo 'am_engine_OBJECTS = $(patsubst %.cpp,%.o,$(filter-out $(codecs),$(engine)))'; \
		echo 'am_rdm_OBJECTS = $(rdm:.cpp=.o)'; \
		echo 'am_ofi_OBJECTS = $(offer:.cpp=.o)'; } >$@
prov/%.o: $(root)/prov/%.cpp | config.h Makefile
	$(call compile)
test/%.o: $(root)/test/%.cpp | config.h
	$(call compile)
12/%.o: $(root)/%.cpp | config.h
	$(call compile,-DDAT_SHIM_API=12 -DDAT_TEST_API=12)
20/%.o: $(root)/%.cpp | config.h
	$(call compile,-DDAT_SHIM_API=20 -DDAT_TEST_API=20)

# The objects of a target. What is not sanitized comes last: of functions that are in
# several objects the first is taken.
shared = $(patsubst %.cpp,%.o,$(sources_$(1)))
own = $(if $(entries_$(1)),$(patsubst %.cpp,$(subst handles,,$(1))/%.o,$(entries_$(1))),\
	test/fuzz/fuzz_$(1).o)
define target
$(1): $(call own,$(1)) $(call shared,$(1))
	$$(CXX) -fsanitize=fuzzer,address,undefined $$(filter %.o,$$^) $$(LDLIBS) -o $$@
dependencies-$(1):
	@echo $(patsubst %.o,%.d,$(call own,$(1)) $(call shared,$(1)))
endef
$(foreach each,$(targets),$(eval $(call target,$(each))))

-include $(shell find . -name '*.d')
