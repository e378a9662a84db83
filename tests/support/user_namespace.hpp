// Lets any user act as root, in a namespace of its own.
#pragma once

namespace stela::test {

/// Makes this process root in its own user and mount namespaces. False where that isn't allowed.
/// Its mounts are visible only to it.
bool become_root_of_a_namespace();

}  // namespace stela::test
