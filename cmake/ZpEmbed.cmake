# zp_embed_scenarios(OUT): a source file with every scenario as a string, so that the binary needs
# no data folder. Runs again at configure time when a file is added or changed.
function(zp_embed_scenarios out)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/scenarios/*.json)
  list(SORT files COMPARE NATURAL)
  set(entries "")
  foreach(path IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(id ${path} NAME_WE)
    file(READ ${path} text)
    string(APPEND entries "    ScenarioFile{.id = \"${id}\", .text = R\"json(${text})json\"},\n")
  endforeach()
  list(LENGTH files count)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/builtin_scenarios.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT
"// Generated from props/scenarios/*.json.
#include <array>

#include \"props/scenario.h\"

namespace zeroproof {

std::span<const ScenarioFile> builtin_scenarios() {
  static constexpr std::array<ScenarioFile, ${count}> kFiles = {
@entries@  };
  return kFiles;
}

}  // namespace zeroproof
" @ONLY)
  set(${out} ${generated} PARENT_SCOPE)
endfunction()

# zp_embed_text(OUT FILE HEADER FUNCTION): a source file with FUNCTION of HEADER, which returns FILE
# as a string.
function(zp_embed_text out file header function)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/builtin_${function}.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT
"// Generated from props/${file}.
#include \"${header}\"

namespace zeroproof {

std::string_view ${function}() {
  return R\"text(${text})text\";
}

}  // namespace zeroproof
" @ONLY)
  set(${out} ${generated} PARENT_SCOPE)
endfunction()

# zp_embed_web(OUT): a source file with the files of props/report/web as strings, so that a page is
# one file that needs no other.
function(zp_embed_web out)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/report/web/*.*)
  list(SORT files COMPARE NATURAL)
  set(entries "")
  foreach(path IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    get_filename_component(name ${path} NAME)
    file(READ ${path} text)
    string(APPEND entries "    WebFile{.name = \"${name}\", .text = R\"web(${text})web\"},\n")
  endforeach()
  list(LENGTH files count)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/builtin_web_files.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT
"// Generated from props/report/web.
#include <array>

#include \"props/report/web_files.h\"

namespace zeroproof {

std::span<const WebFile> web_files() {
  static constexpr std::array<WebFile, ${count}> kFiles = {
@entries@  };
  return kFiles;
}

}  // namespace zeroproof
" @ONLY)
  set(${out} ${generated} PARENT_SCOPE)
endfunction()
