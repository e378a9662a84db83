def check_min_cppstd(_, standard):
    assert standard == 20


def can_run(_):
    return True
