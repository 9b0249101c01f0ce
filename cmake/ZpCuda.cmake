# CUDA and NCCL, when they are found; the engine has a twin source for when they are not.
# ZP_WITH_CUDA: AUTO takes what is there and says in one line what is missing; ON insists; OFF.
set(ZP_WITH_CUDA AUTO CACHE STRING "Build the CUDA runtime: AUTO, ON or OFF")
set(ZP_CUDA_FOUND OFF)

function(zp_find_cuda missing)
  include(CheckLanguage)
  find_program(ZP_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(ZP_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${ZP_NVCC} CACHE FILEPATH "")
  endif()
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(${missing} "nvcc" PARENT_SCOPE)
    return()
  endif()
  find_package(CUDAToolkit QUIET)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS $ENV{NCCL_HOME}/include ${CUDAToolkit_INCLUDE_DIRS}
            /usr/local/cuda/include)
  find_library(NCCL_LIBRARY nccl HINTS $ENV{NCCL_HOME}/lib ${CUDAToolkit_LIBRARY_DIR}
               /usr/local/cuda/lib64)
  find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} /usr/local/cuda/lib64)
  find_path(CUDNN_INCLUDE_DIR cudnn_backend.h HINTS ${CUDAToolkit_INCLUDE_DIRS}
            /usr/local/cuda/include)
  if(NOT CUDAToolkit_FOUND)
    set(${missing} "the CUDA toolkit" PARENT_SCOPE)
  elseif(NOT CUDNN_LIBRARY OR NOT CUDNN_INCLUDE_DIR)
    set(${missing} "cuDNN" PARENT_SCOPE)
  elseif(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
    set(${missing} "NCCL" PARENT_SCOPE)
  endif()
endfunction()

if(NOT ZP_WITH_CUDA STREQUAL "OFF")
  zp_find_cuda(zp_cuda_missing)
  if(zp_cuda_missing AND ZP_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "ZP_WITH_CUDA is ON, and ${zp_cuda_missing} was not found")
  elseif(zp_cuda_missing)
    message(STATUS "cuda: not built (${zp_cuda_missing} not found)")
  else()
    set(ZP_CUDA_FOUND ON)
  endif()
endif()

if(ZP_CUDA_FOUND)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)  # Hopper, and what follows by its PTX
  endif()
  if(ZP_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${ZP_CCACHE})
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know the flag by itself.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  find_package(CUDAToolkit REQUIRED)
  message(STATUS "cuda: CUDA ${CUDAToolkit_VERSION}, NCCL ${NCCL_LIBRARY}")
endif()

# zp_add_cuda(TARGET): what is under runtime/cuda of the layer, or the twin that says it is not there.
# Those of kernels/ have the host's bits, which no multiply-add contracts.
function(zp_add_cuda target)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/runtime/cuda)
  if(NOT ZP_CUDA_FOUND)
    target_sources(${target} PRIVATE ${folder}/no_cuda_world.cpp)
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/no_cuda_[a-z_]*\\.cpp$")
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${folder}/*.cu)
  add_library(zeroproof_cuda_kernels OBJECT ${kernels})
  target_include_directories(zeroproof_cuda_kernels PRIVATE ${PROJECT_SOURCE_DIR}
                             ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(zeroproof_cuda_kernels PRIVATE
    --expt-relaxed-constexpr -diag-suppress=20011,20014 -lineinfo)
  set(exact_kernels ${kernels})
  list(FILTER exact_kernels INCLUDE REGEX "/cuda/kernels/")
  set_source_files_properties(${exact_kernels} PROPERTIES COMPILE_OPTIONS --fmad=false)
  target_sources(${target} PRIVATE ${sources} $<TARGET_OBJECTS:zeroproof_cuda_kernels>)
  target_include_directories(${target} SYSTEM PRIVATE ${NCCL_INCLUDE_DIR} ${CUDNN_INCLUDE_DIR})
  target_compile_definitions(${target} PRIVATE ZP_CUDA_LIBRARIES="${CUDAToolkit_LIBRARY_DIR}")
  # cuBLASLt is loaded by need (fused/lazy_cublas_lt.cpp).
  target_link_libraries(${target} PRIVATE CUDA::cudart_static ${NCCL_LIBRARY} ${CUDNN_LIBRARY}
                        ${CMAKE_DL_LIBS})
endfunction()
