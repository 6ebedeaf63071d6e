# The front door: each target installs what it needs from the distribution where that is missing,
# builds with CMake and Ninja, and does its job. `make help` lists them.

# release builds into build/; asan, ubsan, tsan and debug into build/other/NAME.
CONFIG ?= release
PREFIX ?= /usr/local
DESTDIR ?=
# Further arguments: of the demo, of ctest, of the benchmarks, of JAX's tests, of CMake.
DEMO_ARGS ?=
TEST_ARGS ?=
BENCH_ARGS ?=
JAX_ARGS ?=
CMAKE_ARGS ?=
SECONDS ?= 60
# How many cases JAX generates of each parametrised test.
JAX_CASES ?= 10
# Of the last year; a Python has some of them: 3.11 those below 0.11, 3.13 all.
JAX_VERSIONS ?= 0.8.3 0.9.2 0.10.2 0.11.2 0.12.0
JAX_PYTHON ?= /usr/bin/python3
# The first seed of random programs: another one each day.
FUZZ_SEED ?= $(shell echo $$(($$(date +%s) / 86400 * 1000000)))
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

type_release := Release
type_asan := RelWithDebInfo
type_ubsan := RelWithDebInfo
type_tsan := RelWithDebInfo
type_debug := Debug
sanitize_asan := address
sanitize_ubsan := undefined
sanitize_tsan := thread
ifeq ($(type_$(CONFIG)),)
$(error CONFIG is '$(CONFIG)': use release, asan, ubsan, tsan or debug)
endif
B := $(if $(filter release,$(CONFIG)),build,build/other/$(CONFIG))

packages := src/cmake/packages.sh
define newline


endef
configure = cmake -S . -B $(B) -G Ninja -DCMAKE_BUILD_TYPE=$(type_$(CONFIG)) \
  -DKILN_SANITIZE=$(sanitize_$(CONFIG)) $(CMAKE_ARGS) $(1) >$(B)/configure.log 2>&1 || \
  { cat $(B)/configure.log; exit 1; }
# The tests want more packages than the library does: a tree that has them switched on keeps them.
without_tests = $(if $(wildcard $(B)/CMakeCache.txt),,-DKILN_BUILD_TESTS=OFF)
ninja := ninja -C $(B) -j $(JOBS)
run_tests = cd $(B) && ctest --no-tests=error --output-on-failure --output-junit tests.xml \
  -j $(JOBS) $(1) $(TEST_ARGS)

.PHONY: all build demo test test-all bench bench-peers bench-training bench-jax bench-images bench-workloads gpu-bundle run-time fuzz conformance jax-test jax-versions jax-wheel docs install format check clean help
.DEFAULT_GOAL := build

all: build

build: | $(B)/ ## build the library, the tools and the examples (the default)
	@$(packages) build
	@$(call configure,$(without_tests))
	@$(ninja)

demo: | $(B)/ ## train XLA's classic digit classifier, with the JIT off and on, into build/demo
	@$(packages) demo
	@$(call configure,$(without_tests))
	@$(ninja) mnist_softmax
	@$(B)/bin/mnist_softmax --data docs/examples/digits --out $(B)/demo $(DEMO_ARGS)

test: | $(B)/ ## build and run the tests, but for the slow ones
	@$(packages) test
	@$(call configure,-DKILN_BUILD_TESTS=ON)
	@$(ninja)
	@$(call run_tests,-LE slow)

test-all: | $(B)/ ## build and run all tests
	@$(packages) test
	@$(call configure,-DKILN_BUILD_TESTS=ON)
	@$(ninja)
	@$(call run_tests,)

bench: | $(B)/ ## measure: a table, and JSON lines in build/bench.jsonl
	@$(packages) test bench
	@$(call configure,-DKILN_BUILD_TESTS=ON)
	@$(ninja) kiln-bench
	@$(B)/bin/kiln-bench --json $(B)/bench.jsonl $(BENCH_ARGS)

# Builds targets, and makes the environments of peers, torch and jax, where they are not there.
folder_of_torch := peers
folder_of_jax := peers-jax
define with_peers
@$(packages) build peers
@$(call configure,$(without_tests))
@$(ninja) $(1)
$(foreach peer,$(2),@/usr/bin/python3 tests/bench/peers/environment.py $(B)/$(folder_of_$(peer)) $(peer)$(newline))
endef
# The environment is made once. What PyTorch frees it gets again, without a page fault for each page.
peers_environment = MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=10000000000 \
  MALLOC_TOP_PAD_=268435456 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bindings/python \
  KILN_LIBRARY=$(abspath $(B))/lib/libkiln.so TORCHINDUCTOR_CACHE_DIR=$(abspath $(B))/peers-code
peers_run = $(peers_environment) $(B)/peers/bin/python tests/bench/peers/peers.py

bench-peers: | $(B)/ ## measure beside PyTorch and NumPy, which are installed into build/peers; then the four below
	$(call with_peers,lib/libkiln.so,torch)
	@rm -f $(B)/bench-peers.jsonl
	@for threads in 1 $(filter-out 1,$(JOBS)); do OMP_NUM_THREADS=$$threads \
	  $(peers_run) --json $(B)/bench-peers.jsonl $(BENCH_ARGS) || exit 1; done
	@$(if $(BENCH_ARGS),,$(MAKE) --no-print-directory bench-training bench-jax bench-images bench-workloads)

training_run = $(peers_environment) $(B)/peers/bin/python tests/bench/peers/training/compare.py \
  --kiln $(B)/peers/bin/python --torch $(B)/peers/bin/python --jax $(B)/peers-jax/bin/python \
  --mkl $(abspath $(B))/peers/intel.so

bench-training: | $(B)/ ## measure steps of trainings beside PyTorch and XLA
	$(call with_peers,lib/libkiln.so,torch jax)
	@rm -f $(B)/bench-training.jsonl
	@for threads in 1 $(filter-out 1,$(JOBS)); do \
	  $(training_run) --threads $$threads --json $(B)/bench-training.jsonl $(BENCH_ARGS) || exit 1; done

jax_run = PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bindings/jax $(B)/peers-jax/bin/python \
  tests/bench/peers/jax
jax_options = --library $(abspath $(B))/lib/libkiln_pjrt.so --json $(B)/bench-jax.jsonl

bench-jax: | $(B)/ ## measure JAX programs on Kiln beside XLA's CPU; JAX is installed into build/peers-jax
	$(call with_peers,lib/libkiln_pjrt.so,jax)
	@rm -f $(B)/bench-jax.jsonl
	@for threads in 1 $(filter-out 1,$(JOBS)); do \
	  $(jax_run)/compare.py $(jax_options) --threads $$threads $(BENCH_ARGS) || exit 1; done
	@$(if $(BENCH_ARGS),,$(jax_run)/limits.py $(jax_options) --threads $(JOBS))

images_run = $(peers_environment) $(B)/peers/bin/python tests/bench/peers/images/compare.py \
  --peers $(B)/peers/bin/python --jax $(B)/peers-jax/bin/python

bench-images: | $(B)/ ## measure networks for images beside ONNX Runtime, oneDNN and XLA's CPU
	$(call with_peers,lib/libkiln.so,torch jax)
	@rm -f $(B)/bench-images.jsonl
	@for threads in 1 $(filter-out 1,$(JOBS)); do $(images_run) --threads $$threads \
	  --json $(B)/bench-images.jsonl $(BENCH_ARGS) || exit 1; done
	@/usr/bin/python3 tests/bench/peers/table.py $(B)/bench-images.jsonl

workloads_run = $(peers_environment) $(B)/peers-jax/bin/python tests/bench/peers/hlo/compare.py \
  --run $(B)/bin/kiln-run

bench-workloads: | $(B)/ ## measure the programs in HLO text of KILN_WORKLOADS_DIR beside XLA's CPU
	$(call with_peers,lib/libkiln.so kiln-run,jax)
	@rm -f $(B)/bench-workloads.jsonl
	@for threads in 1 $(filter-out 1,$(JOBS)); do $(workloads_run) --threads $$threads \
	  --json $(B)/bench-workloads.jsonl $(BENCH_ARGS) || exit 1; done

gpu-bundle: | $(B)/ ## pack build/kiln-gpu-check.tar.gz: tests and benchmarks for a machine with a GPU
	@$(packages) test
	@$(call configure,-DKILN_BUILD_TESTS=ON)
	@$(ninja) gpu-bundle

run_time := build/other/run-time-aarch64

run-time: ## cross-compile libkiln_rt.a for programs on AArch64, into build/other/run-time-aarch64/lib
	@$(packages) run-time
	@cmake -S . -B $(run_time) -G Ninja -DCMAKE_BUILD_TYPE=Release -DKILN_RUN_TIME_ONLY=ON \
	  -DCMAKE_TOOLCHAIN_FILE=$(CURDIR)/src/cmake/aarch64.cmake $(CMAKE_ARGS)
	@ninja -C $(run_time) -j $(JOBS)

fuzz: | $(B)/ ## random programs, inputs and calls for SECONDS (60); CONFIG=asan makes it sharper
	@$(packages) test
	@$(call configure,-DKILN_BUILD_TESTS=ON)
	@$(ninja) kiln-fuzzers
	@set -- $(B)/bin/fuzz-*; each=$$(($(SECONDS) / 4 / $$# + 1)); \
	for fuzzer in "$$@"; do \
	  echo "$$fuzzer" && $$fuzzer --seconds $$each --seed $(FUZZ_SEED) || exit 1; done
	@$(B)/bin/kiln-fuzz-programs --corpora --seconds $$(($(SECONDS) / 4)) --seed $(FUZZ_SEED) --out $(B)
	@$(B)/bin/kiln-fuzz-graphs --coverage --seconds $$(($(SECONDS) / 4)) --first $(FUZZ_SEED)
	@$(B)/bin/kiln-fuzz-calls --seconds $$(($(SECONDS) / 4)) --seed $(FUZZ_SEED)

conformance: build ## run StableHLO's own programs of KILN_CONFORMANCE_DIR; writes docs/conformance.md
	@/usr/bin/python3 tests/conformance/score.py $(B)/bin/kiln-run --write docs/conformance.md

jax_plugin = $(abspath $(B))/lib/libkiln_pjrt.so

jax-test: | $(B)/ ## run JAX's own tests of KILN_CONFORMANCE_DIR on Kiln and on cpu; writes docs/jax.md
	@$(packages) build jax
	@$(call configure,$(without_tests))
	@$(ninja) lib/libkiln_pjrt.so
	@/usr/bin/python3 bindings/jax/tests/conformance/environment.py $(B)/jax docs/jax.md
	@/usr/bin/python3 bindings/jax/tests/conformance/run.py --python $(abspath $(B))/jax/bin/python \
	  --plugin $(jax_plugin) --out $(B)/jax-tests --cases $(JAX_CASES) --write docs/jax.md $(JAX_ARGS)

jax-versions: | $(B)/ ## run the tests of JAX's plugin with each of JAX_VERSIONS, which JAX_PYTHON can have
	@$(packages) test jax
	@$(call configure,-DKILN_BUILD_TESTS=ON)
	@$(ninja) kiln_pjrt
	@for version in $(JAX_VERSIONS); do environment=$(abspath $(B))/jax-$$version; \
	  $(JAX_PYTHON) bindings/jax/tests/conformance/environment.py $$environment jax==$$version && \
	  KILN_TEST_PYTHON=$$environment/bin/python ctest --test-dir $(B) -R '^bindings.jax' \
	    -E 'table|torch_xla|conformance' --output-on-failure || exit 1; done

jax-wheel: | $(B)/ ## make build/kiln_jax-VERSION-....whl: the package for Python with which JAX runs on Kiln
	@$(packages) build jax
	@$(call configure,$(without_tests))
	@$(ninja) lib/libkiln_pjrt.so
	@/usr/bin/python3 bindings/jax/wheel.py $(jax_plugin) include/kiln/version.h $(B)

docs: | $(B)/ ## write the reference pages into build/docs
	@$(packages) docs
	@KILN_DOCS_OUT=$(B)/docs doxygen docs/Doxyfile
	@echo "Reference: $(B)/docs/html/index.html"

# With sudo, what was built is installed as it is: a build as root would leave files behind that
# their owner cannot write.
install: $(if $(and $(SUDO_USER),$(wildcard $(B)/lib/libkiln.so)),,build) ## install below PREFIX (/usr/local), or DESTDIR/PREFIX
	@DESTDIR=$(DESTDIR) cmake --install $(B) --prefix $(PREFIX) --strip
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ]; then ldconfig; fi

format: ## format the sources
	@$(packages) format
	@/usr/bin/python3 tests/gate/format.py --fix .

check: ## look at the sources without building: format, layers, layout, links, names, pages
	@$(packages) format
	@for gate in format layers layout links names pages; do \
	  /usr/bin/python3 tests/gate/$$gate.py . || exit 1; done

clean: ## remove what was built
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' Makefile
	@echo "CONFIG=asan|ubsan|tsan|debug builds into build/other/CONFIG."

$(B)/:
	@mkdir -p $@
