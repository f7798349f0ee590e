# The module that JavaScript loads, and what tests and benches need to run as wasm.
set(wasm_memory
    -sALLOW_MEMORY_GROWTH       # start small, grow as asked
    -sMAXIMUM_MEMORY=2147483648 # addresses stay below 2 GiB, so no number is ever negative
    -sABORTING_MALLOC=0         # out of memory is a null pointer, not a dead module
    -sMALLOC=dlmalloc           # grows its last block by what that lacks; emmalloc takes all of it anew
    -Wno-pthreads-mem-growth)   # views are renewed by web/src/memory.ts, not by the glue

# The programs' glue is CommonJS, whatever the package says.
file(WRITE ${CMAKE_BINARY_DIR}/package.json "{ \"type\": \"commonjs\" }\n")
foreach(program qkv_tests qkv_bench)
  target_link_options(${program} PRIVATE ${wasm_memory} -sEXIT_RUNTIME -sSTACK_SIZE=1048576)
  if(QKV_THREADS)
    # main() runs in a thread of its own: only a free event loop can start and reclaim workers.
    target_link_options(${program} PRIVATE -sPROXY_TO_PTHREAD
                        --pre-js ${CMAKE_SOURCE_DIR}/cpp/without-wait-async.js)
  endif()
endforeach()

file(GLOB binding_sources CONFIGURE_DEPENDS cpp/bindings/*.cpp)
add_executable(qkv_module ${binding_sources})
target_link_libraries(qkv_module PRIVATE qkv embind)
# Bindings take no time to speak of: they are built small.
target_compile_options(qkv_module PRIVATE -Oz)
# Without RTTI Embind cannot name a type that was not registered; the boundary test finds such.
target_compile_definitions(qkv_module PRIVATE EMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0)
# Workers load the glue by its own name, so it is built under the name that it ships by.
set_target_properties(qkv_module PROPERTIES
                      OUTPUT_NAME $<IF:$<BOOL:${QKV_THREADS}>,qkv-mt,qkv>
                      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/module
                      LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cpp/bindings/unused-types.js)
target_link_options(qkv_module PRIVATE
    ${wasm_memory}
    -sINITIAL_MEMORY=2097152      # as in web/src/load.ts, which makes the memory
    -sMEMORY_GROWTH_GEOMETRIC_STEP=0 # by what is asked: more is refused near the limit, though the call would fit
    -sIMPORTED_MEMORY
    -sSTACK_SIZE=65536            # scratch lies in workspaces, never on the stack
    -sMODULARIZE -sEXPORT_ES6
    -sDYNAMIC_EXECUTION=0         # no eval: pages with a content security policy can load it
    -sFILESYSTEM=0 -sASSERTIONS=0 
    -sINCOMING_MODULE_JS_API=wasmMemory,instantiateWasm
    -sEXPORTED_FUNCTIONS=_malloc,_free
    --js-library ${CMAKE_SOURCE_DIR}/cpp/bindings/unused-types.js
    -fno-rtti                     # takes the Embind that matches the way we compile
    --no-entry)
if(QKV_THREADS)
  # load() says how many: the workers must be there before the first thread is made.
  target_link_options(qkv_module PRIVATE -sENVIRONMENT=web,worker,node
                      -sPTHREAD_POOL_SIZE=Module["poolSize"] -sEXPORTED_RUNTIME_METHODS=PThread)
else()
  # Nothing of it depends on the host: the loader hands it a compiled module.
  target_link_options(qkv_module PRIVATE -sENVIRONMENT=web -sEXPORTED_RUNTIME_METHODS=)
endif()
