# xsimd, Eigen and doctest: the system's where it has them, else fetched. All are headers, named by
# folders of their own, so that a cross build never sees the rest of the system's headers.
include(FetchContent)

function(qkv_header_library name header repository tag subfolder)
  string(TOUPPER ${name}_INCLUDE folder)
  # NO_CMAKE_FIND_ROOT_PATH: headers have no architecture, so a cross build takes the host's.
  find_path(${folder} ${header} PATHS /usr/include /usr/local/include /opt/homebrew/include
            PATH_SUFFIXES eigen3 NO_CMAKE_FIND_ROOT_PATH)
  add_library(${name} INTERFACE)
  if(${folder})
    # A link to the library's own folder: its parent may hold headers of the host.
    get_filename_component(top ${header} DIRECTORY)
    set(links ${CMAKE_BINARY_DIR}/include/${name})
    file(MAKE_DIRECTORY ${links})
    file(CREATE_LINK ${${folder}}/${top} ${links}/${top} SYMBOLIC)
    target_include_directories(${name} SYSTEM INTERFACE ${links})
  else()
    message(STATUS "${header} is not on this system: fetching ${repository} ${tag}")
    FetchContent_Declare(${name}_source GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON
                         SOURCE_SUBDIR only-headers-are-needed)
    FetchContent_MakeAvailable(${name}_source)
    target_include_directories(${name} SYSTEM INTERFACE ${${name}_source_SOURCE_DIR}/${subfolder})
  endif()
endfunction()

qkv_header_library(qkv_simd xsimd/xsimd.hpp https://github.com/xtensor-stack/xsimd.git 13.2.0 include)
qkv_header_library(qkv_eigen Eigen/Core https://gitlab.com/libeigen/eigen.git 3.4.0 .)
qkv_header_library(qkv_doctest doctest/doctest.h https://github.com/doctest/doctest.git v2.4.11 .)
