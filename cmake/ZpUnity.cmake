# Unity builds: a batch of a folder's sources is one unit, which reads their headers once: half the
# time of a whole build. Names in anonymous namespaces are unique in a folder.
# -DCMAKE_UNITY_BUILD=OFF compiles each source alone, as ./zp tidy does.
option(CMAKE_UNITY_BUILD "Compile the sources of a folder in batches" ON)
set(ZP_UNITY_BATCH 12 CACHE STRING "Sources of one batch at the most")

# zp_unity_groups(TARGET PREFIX source…): puts sources of TARGET into batches of their own.
function(zp_unity_groups target prefix)
  set(folders "")
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${folder} folder)
    list(APPEND folders ${folder})
    list(APPEND sources_${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH sources_${folder} count)
    math(EXPR batches "(${count} + ${ZP_UNITY_BATCH} - 1) / ${ZP_UNITY_BATCH}")
    set(index 0)
    foreach(source IN LISTS sources_${folder})
      math(EXPR batch "${index} * ${batches} / ${count}")
      math(EXPR index "${index} + 1")
      set_property(SOURCE ${source} TARGET_DIRECTORY ${target}
                   PROPERTY UNITY_GROUP ${prefix}${folder}_${batch})
    endforeach()
  endforeach()
endfunction()

# zp_unity(TARGET source…): TARGET is compiled in batches of these; other sources of it alone.
function(zp_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  # A class of one source may have members of that source's own types.
  if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
  zp_unity_groups(${target} "" ${ARGN})
endfunction()
