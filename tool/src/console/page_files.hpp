// The files of the page. CMake generates their source from tool/console/dist.
#pragma once

#include "console/page.hpp"

#include <span>

namespace stela::tool {

/// index.html is the first.
std::span<const PageFile> page_files();

}  // namespace stela::tool
