// Description of what is wrong.
#pragma once

#include "description/description.hpp"
#include "diagnosis/finding.hpp"

#include <string>
#include <vector>

namespace stela::tool {

namespace description {
extern const Description<Finding> finding;
}

/// A list of objects; the cause of one is named by its code and subject.
Json json_of(const std::vector<Finding>& findings);

}  // namespace stela::tool
