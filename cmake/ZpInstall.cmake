# cmake --install: the command, its traces, the package that it hunts with, the layers' libraries
# and headers, and a package that find_package(zeroproof) reads. zp_install() is called once every
# target exists.
include(CMakePackageConfigHelpers)

function(zp_install)
  set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/zeroproof)
  install(TARGETS zeroproof RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  if(ZP_BUILD_MUTATION)
    install(TARGETS zeroproof-mutation RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/tests/traces
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zeroproof)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/subject/zeroproof_subject
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zeroproof/subject
          PATTERN "__pycache__" EXCLUDE)
  install(EXPORT zeroproof_targets NAMESPACE zeroproof:: DESTINATION ${package_folder}
          FILE zeroproof-targets.cmake)
  configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/zeroproof-config.cmake.in
    ${PROJECT_BINARY_DIR}/zeroproof-config.cmake INSTALL_DESTINATION ${package_folder})
  write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/zeroproof-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/zeroproof-config.cmake
                ${PROJECT_BINARY_DIR}/zeroproof-config-version.cmake
          DESTINATION ${package_folder})
endfunction()
