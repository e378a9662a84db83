// What only root may do, done by any user in a namespace of its own.
#pragma once

namespace stela::test {

/// Makes this process the root of a namespace for users and mounts; false where that isn't allowed.
/// What it mounts nobody else sees.
bool become_root_of_a_namespace();

}  // namespace stela::test
