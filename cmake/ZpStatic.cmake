# ZP_STATIC_LIBRARIES=FOLDER: a program that needs no shared library but those of glibc. FOLDER has
# what packaging/static_libraries.sh makes of Debian's sources; the rest is static in Debian.

# zp_static_library(TARGET LIBRARY VERSION_VARIABLE): the imported target of one archive.
function(zp_static_library target library version_variable)
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION ${ZP_STATIC_LIBRARIES}/lib${library}.a)
  file(STRINGS ${ZP_STATIC_LIBRARIES}/lib${library}.version version)
  set(${version_variable} ${version} PARENT_SCOPE)
endfunction()

# zp_link_archive(TARGET ARCHIVE): a target that was found links ARCHIVE of the system.
function(zp_link_archive target archive)
  find_library(path_of_${archive} ${archive} REQUIRED)
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES ${path_of_${archive}})
endfunction()
