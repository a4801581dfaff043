import os

from demoa.core.threads import get_threads, map_in_threads, set_threads


def test_results_keep_their_order_for_any_number_of_threads():
    for threads in (1, 2, 3, 8):
        set_threads(threads)
        assert get_threads() == threads
        for count in (0, 1, 2, 7, 50):
            assert map_in_threads(lambda x: x * x, range(count)) == [x * x for x in range(count)]
    set_threads(None)
    assert get_threads() >= 1


def test_a_forked_child_gets_threads_of_its_own():
    set_threads(2)
    map_in_threads(str, range(4))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"ok" if map_in_threads(str, range(4)) == ["0", "1", "2", "3"] else b"no")
        os._exit(0)
    os.close(write)
    assert os.read(read, 2) == b"ok"
    assert os.waitpid(child, 0)[1] == 0
    os.close(read)
    set_threads(None)
