#!/bin/sh
# Runs a compiler, which is the first argument, through ccache, so that precompiled headers are
# cached, too, and users of one (ccache's manual, "Precompiled headers").
export CCACHE_SLOPPINESS=pch_defines,time_macros
# When GCC collects garbage changes no object.
export CCACHE_IGNOREOPTIONS=--param=ggc-min-heapsize=*
# A precompiled header is large: its digest is computed once, not for each of its users.
export CCACHE_INODECACHE=1
# One that is there already would pass for a source of the new one.
for argument; do
  case $argument in *.gch) rm -f "$argument" ;; esac
done
exec ccache "$@"
